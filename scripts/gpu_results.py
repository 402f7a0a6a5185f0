#!/usr/bin/env python3
"""The end of scripts/gpu_check.sh: from what its sections left to one file of results and a table.

Reads, in the folder $work: records (a line a section: kind, name, status, seconds, note, by tabs),
kernels (what kernel_bench printed), runs (what compare_torch_gpu.sh appended), job/*/metrics.jsonl.
Writes $results. Exit code 1 where a test did not pass.
"""

import datetime
import json
import os
import statistics
import sys

# What a figure should be: at least, or at most, by its kind; one that is not here has no target. The
# speeds are those of an H100 or H200.
AT_LEAST = {
    "kernel": 0.85,
    "7b tokens/s": 12900,
    "7b share": 0.60,
    "7b against PyTorch": 1.2,
    "1b share": 0.55,
    "0.5b against PyTorch": 1.3,
    "7b fp8 against bf16-sr": 1.3,
}
AT_MOST = {
    "7b start": 15,
    "fp32 loss": 1e-5,
    "bf16-sr loss": 5e-3,
}


def read_lines(name):
    path = os.path.join(os.environ["work"], name)
    return open(path).read().splitlines() if os.path.exists(path) else []


def read_json_lines(name):
    return [json.loads(line) for line in read_lines(name)]


def read_sections():
    keys = ("kind", "name", "status", "seconds", "note")
    sections = [dict(zip(keys, line.split("\t"))) for line in read_lines("records")]
    for section in sections:
        section["seconds"] = int(section["seconds"]) if section["seconds"] else None
    return sections


def figure(name, value, unit, kind=None):
    entry = {"name": name, "value": value, "unit": unit}
    if kind in AT_LEAST:
        entry |= {"at_least": AT_LEAST[kind], "met": value >= AT_LEAST[kind]}
    if kind in AT_MOST:
        entry |= {"at_most": AT_MOST[kind], "met": value <= AT_MOST[kind]}
    return entry


def kernel_figures(kernels):
    for kernel in kernels:
        if "copy_gb_per_s" in kernel:
            yield figure("copy within the device", kernel["copy_gb_per_s"], "GB/s")
            yield figure("large bf16 product", kernel["matmul_tflops"], "TFLOP/s")
        elif "ratio" in kernel:
            yield figure(kernel["kernel"], kernel["ratio"], "of the copy's rate", "kernel")
        elif "tflops" in kernel:
            yield figure(kernel["kernel"], kernel["tflops"], "TFLOP/s")


def skein_figures(size, name, runs):
    def median(key):
        return statistics.median(run[key] for run in runs)

    # What is asked for is asked of bf16-sr.
    kind = size if name == "skein-bf16-sr" else "other"
    title = f"{size} {name}"
    yield figure(title, median("tokens_per_s"), "tokens/s", f"{kind} tokens/s")
    yield figure(title, median("model_tflops"), "model TFLOP/s")
    peak = f"of {runs[0]['peak_tflops']:g} TFLOP/s"
    yield figure(title, median("share_of_peak"), peak, f"{kind} share")
    yield figure(title, median("share_of_matmul"), "of the large product")
    yield figure(f"{title}, peak memory", median("peak_bytes"), "bytes")
    if len(runs) > 1:
        start = f"{title}, second start to first step"
        yield figure(start, runs[1]["first_step_s"], "s", f"{kind} start")


def training_figures(runs):
    for size in dict.fromkeys(run["size"] for run in runs):
        speed = {}
        for name in dict.fromkeys(run["name"] for run in runs if run["size"] == size):
            mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
            speed[name] = statistics.median(run["tokens_per_s"] for run in mine)
            if name.startswith("skein"):
                yield from skein_figures(size, name, mine)
            else:
                yield figure(f"{size} {name}", speed[name], "tokens/s")
        rivals = [value for name, value in speed.items() if name.startswith("torch")]
        ratios = {"against PyTorch": ("skein-bf16-sr", max(rivals, default=None)),
                  "fp8 against bf16-sr": ("skein-fp8", speed.get("skein-bf16-sr"))}
        for name, (ours, other) in ratios.items():
            if ours in speed and other:
                kind = f"{size} {name}"
                yield figure(kind, round(speed[ours] / other, 4), "times as fast", kind)


def loss_figures():
    for mode in ("fp32", "bf16-sr"):
        cpu, gpu = ({step["step"]: step["loss"]
                     for step in read_json_lines(f"job/{mode}-{kind}/metrics.jsonl")}
                    for kind in ("cpu", "cuda"))
        if cpu and cpu.keys() == gpu.keys():
            difference = max(abs(gpu[step] - cpu[step]) / abs(cpu[step]) for step in cpu)
            yield figure(f"loss of {mode} over {len(cpu)} steps, beside the CPU's", difference,
                         "largest relative difference", f"{mode} loss")


def print_table(sections, figures):
    print()
    for section in sections:
        print(f"{section['name']:20} {section['status']:10} {section['note']}".rstrip())
    print()
    for entry in figures:
        line = f"{entry['name']:48} {entry['value']:>14.6g} {entry['unit']}"
        for key, words in (("at_least", "at least"), ("at_most", "at most")):
            if key in entry:
                line += f", {words} {entry[key]:g}: {'met' if entry['met'] else 'MISSED'}"
        print(line)


def main():
    sections = read_sections()
    kernels, runs = read_json_lines("kernels"), read_json_lines("runs")
    figures = [*kernel_figures(kernels), *training_figures(runs), *loss_figures()]
    is_dry = os.environ.get("SKEIN_GPU_CHECK_DRY", "") != ""
    bad = any((section["kind"] == "test" or is_dry)
              and section["status"] not in ("passed", "skipped") for section in sections)
    now = datetime.datetime.now(datetime.timezone.utc)
    result = {key: os.environ.get(key, "")
              for key in ("device", "gpu", "driver", "cuda", "torch", "commit")}
    result |= {"date": now.isoformat(timespec="seconds"), "seconds": int(os.environ["seconds"]),
               "passed": not bad, "sections": sections, "figures": figures, "kernels": kernels,
               "runs": runs}
    with open(os.environ["results"], "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    print_table(sections, figures)
    return 1 if bad else 0


sys.exit(main())
