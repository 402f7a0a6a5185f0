#!/usr/bin/env python3
"""After each section of scripts/gpu_check.sh, and each run within one: from what was left so far to
one file of results and a table.

Reads, in the folder $work: records (a line a section: kind, name, status, seconds, note, by tabs),
kernels (what kernel_bench printed), runs (what compare_torch_gpu.sh appended), starts (what
gpu_start.py appended), job/*/metrics.jsonl. $running, of $running_kind, is the section under way, and
$complete is set once none is to come.
Writes $results, whole or not at all. A number that is none (nan, inf) becomes null and meets no
target; a line that is torn is left out; `unread` of the results names both. Exit code 1 where a test
did not pass, 2 where nothing could be written. A section of kind "again" repeats one that failed, in
another way, and decides nothing.
"""

import datetime
import json
import math
import os
import re
import statistics
import sys
import time
import traceback

# What a figure should be: at least, or at most, by its kind; one that is not here has no target. The
# speeds are those of an H100 or H200. Shares of the peak count causal attention at half of its square:
# 12,900 tokens/s of 7B are 55.9 % of 989 TFLOP/s so, and 60.1 % with the whole square.
AT_LEAST = {
    "kernel": 0.85,
    "7b tokens/s": 12900,
    "7b share": 0.559,
    "7b against PyTorch": 1.0,
    "7b-micro2 tokens/s": 12900,
    "7b-micro2 against PyTorch": 1.0,
    "1b share": 0.55,
    "0.5b against PyTorch": 1.3,
    "7b fp8 against bf16-sr": 1.35,
}
AT_MOST = {
    "7b start": 15,
    "fp32 loss": 1e-5,
    "bf16-sr loss": 5e-3,
}


def read_lines(name):
    path = os.path.join(os.environ["work"], name)
    return open(path).read().splitlines() if os.path.exists(path) else []


def no_number(_):
    return None


def read_json_lines(name, unread):
    """The objects of a file; fmt prints what is no number as nan, -nan or inf."""
    objects = []
    for number, line in enumerate(read_lines(name), 1):
        valid, count = re.subn(r"(?<=[\s:\[,])-?(?:nan|inf)(?=[\s,\]}])", "null", line)
        if count or "NaN" in line or "Infinity" in line:
            unread.append(f"{name}, line {number}: a number that is none: {line[:500]}")
        try:
            objects.append(json.loads(valid, parse_constant=no_number))
        except json.JSONDecodeError:
            unread.append(f"{name}, line {number}: torn: {line[:500]}")
    return [entry for entry in objects if isinstance(entry, dict)]


def read_sections():
    keys = ("kind", "name", "status", "seconds", "note")
    sections = [dict(zip(keys, line.split("\t"))) for line in read_lines("records")]
    for section in sections:
        section["seconds"] = int(section["seconds"]) if section["seconds"] else None
    if os.environ.get("running"):
        values = (os.environ["running_kind"], os.environ["running"], "running", None, "")
        sections.append(dict(zip(keys, values)))
    return sections


def write(result, path):
    """At once: what is there is whole at any time. Two may write, where a signal comes."""
    new = f"{path}.{os.getpid()}.new"
    with open(new, "w") as file:
        json.dump(result, file, indent=1, allow_nan=False)
        file.write("\n")
    os.replace(new, path)


def figure(name, value, unit, kind=None):
    is_number = value is not None and math.isfinite(value)
    entry = {"name": name, "value": value if is_number else None, "unit": unit}
    if kind in AT_LEAST:
        entry |= {"at_least": AT_LEAST[kind], "met": is_number and value >= AT_LEAST[kind]}
    if kind in AT_MOST:
        entry |= {"at_most": AT_MOST[kind], "met": is_number and value <= AT_MOST[kind]}
    return entry


def median(runs, key):
    """None where a run has no such number: half a median says nothing."""
    values = [run.get(key) for run in runs]
    return statistics.median(values) if values and None not in values else None


def kernel_figures(kernels):
    for kernel in kernels:
        if "copy_gb_per_s" in kernel:
            yield figure("copy within the device", kernel["copy_gb_per_s"], "GB/s")
            yield figure("large bf16 product", kernel.get("matmul_tflops"), "TFLOP/s")
        elif "kernel" not in kernel:
            continue
        elif "ratio" in kernel:
            yield figure(kernel["kernel"], kernel["ratio"], "of the copy's rate", "kernel")
        elif "tflops" in kernel:
            yield figure(kernel["kernel"], kernel["tflops"], "TFLOP/s")


def skein_figures(size, name, runs):
    # What is asked for is asked of bf16-sr.
    kind = size if name == "skein-bf16-sr" else "other"
    title = f"{size} {name}"
    yield figure(title, median(runs, "tokens_per_s"), "tokens/s", f"{kind} tokens/s")
    yield figure(title, median(runs, "model_tflops"), "model TFLOP/s")
    peak = f"of {runs[0].get('peak_tflops') or 0:g} TFLOP/s, attention at half of its square"
    yield figure(title, median(runs, "share_of_peak"), peak, f"{kind} share")
    yield figure(title, median(runs, "share_of_peak_whole_square"), "of it, with the whole square")
    yield figure(title, median(runs, "share_of_matmul"), "of the large product")
    yield figure(f"{title}, peak memory", median(runs, "peak_bytes"), "bytes")
    if len(runs) > 1:
        start = f"{title}, second start to first step"
        yield figure(start, runs[1].get("first_step_s"), "s", f"{kind} start")


def training_figures(runs):
    for size in dict.fromkeys(run["size"] for run in runs):
        speed = {}
        for name in dict.fromkeys(run["name"] for run in runs if run["size"] == size):
            mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
            speed[name] = median(mine, "tokens_per_s")
            if name.startswith("skein"):
                yield from skein_figures(size, name, mine)
            else:
                yield figure(f"{size} {name}", speed[name], "tokens/s")
        rivals = [value for name, value in speed.items() if name.startswith("torch") and value]
        ratios = {"against PyTorch": ("skein-bf16-sr", max(rivals, default=None)),
                  "fp8 against bf16-sr": ("skein-fp8", speed.get("skein-bf16-sr"))}
        for name, (ours, other) in ratios.items():
            if speed.get(ours) and other:
                kind = f"{size} {name}"
                yield figure(kind, round(speed[ours] / other, 4), "times as fast", kind)


def start_figures(starts):
    if len(starts) < 2:
        return
    for key, what in (("first_step_begins_s", "beginning"), ("first_step_ends_s", "end")):
        yield figure(f"`skein train` of 7B, second start to the {what} of its first step",
                     starts[1].get(key), "s", "7b start")


def loss_figures(unread):
    for mode in ("fp32", "bf16-sr"):
        cpu, gpu = ({step["step"]: step["loss"]
                     for step in read_json_lines(f"job/{mode}-{kind}/metrics.jsonl", unread)}
                    for kind in ("cpu", "cuda"))
        if cpu and cpu.keys() == gpu.keys():
            is_whole = None not in cpu.values() and None not in gpu.values()
            difference = max(abs(gpu[step] - cpu[step]) / abs(cpu[step])
                             for step in cpu) if is_whole else None
            yield figure(f"loss of {mode} over {len(cpu)} steps, beside the CPU's", difference,
                         "largest relative difference", f"{mode} loss")


def print_table(sections, figures):
    print()
    for section in sections:
        print(f"{section['name']:20} {section['status']:10} {section['note']}".rstrip())
    print()
    for entry in figures:
        value = "no number" if entry["value"] is None else f"{entry['value']:.6g}"
        line = f"{entry['name']:48} {value:>14} {entry['unit']}"
        for key, words in (("at_least", "at least"), ("at_most", "at most")):
            if key in entry:
                line += f", {words} {entry[key]:g}: {'met' if entry['met'] else 'MISSED'}"
        print(line)


def main():
    sections = read_sections()
    unread = []
    kernels, runs = read_json_lines("kernels", unread), read_json_lines("runs", unread)
    runs = [run for run in runs if isinstance(run.get("run"), dict)]
    figures = [*kernel_figures(kernels), *training_figures(runs),
               *start_figures(read_json_lines("starts", unread)), *loss_figures(unread)]
    is_dry = os.environ.get("SKEIN_GPU_CHECK_DRY", "") != ""
    bad = any((section["kind"] == "test" or is_dry) and section["kind"] != "again"
              and section["status"] not in ("passed", "skipped") for section in sections)
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {key: os.environ.get(key, "")
              for key in ("device", "gpu", "driver", "cuda", "cudnn", "torch", "commit")}
    complete = os.environ.get("complete", "") != ""
    result |= {"date": now.isoformat(timespec="seconds"),
               "seconds": int(time.time() - float(os.environ["began"])), "complete": complete,
               "passed": complete and not bad, "sections": sections, "figures": figures,
               "kernels": kernels, "runs": runs, "unread": unread}
    write(result, os.environ["results"])
    print_table(sections, figures)
    for line in unread:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:
        traceback.print_exc()
        sys.exit(2)
