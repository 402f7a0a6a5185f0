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

# What a figure of each kind should be at least; a kind that is not here has no target yet.
TARGETS = {"kernel": 0.85}


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
    target = TARGETS.get(kind)
    met = None if target is None else value >= target
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met}


def kernel_figures(kernels):
    for kernel in kernels:
        if "copy_gb_per_s" in kernel:
            yield figure("copy within the device", kernel["copy_gb_per_s"], "GB/s")
            yield figure("large bf16 product", kernel["matmul_tflops"], "TFLOP/s")
        elif "ratio" in kernel:
            yield figure(kernel["kernel"], kernel["ratio"], "of the copy's rate", "kernel")
        elif "tflops" in kernel:
            yield figure(kernel["kernel"], kernel["tflops"], "TFLOP/s")


def skein_figures(name, runs):
    def median(key):
        return statistics.median(run[key] for run in runs)

    yield figure(name, median("model_tflops"), "model TFLOP/s")
    yield figure(name, median("share_of_peak"), f"of {runs[0]['peak_tflops']:g} TFLOP/s")
    yield figure(name, median("share_of_matmul"), "of the large product")
    yield figure(f"{name}, peak memory", median("peak_bytes"), "bytes")
    if len(runs) > 1:
        yield figure(f"{name}, second start to first step", runs[1]["first_step_s"], "s")


def training_figures(runs):
    for size in dict.fromkeys(run["size"] for run in runs):
        speed = {}
        for name in dict.fromkeys(run["name"] for run in runs if run["size"] == size):
            mine = [run["run"] for run in runs if (run["size"], run["name"]) == (size, name)]
            speed[name] = statistics.median(run["tokens_per_s"] for run in mine)
            yield figure(f"{size} {name}", speed[name], "tokens/s")
            if name.startswith("skein"):
                yield from skein_figures(f"{size} {name}", mine)
        rivals = [value for name, value in speed.items() if name.startswith("torch")]
        if rivals and "skein-bf16-sr" in speed:
            ratio = speed["skein-bf16-sr"] / max(rivals)
            yield figure(f"{size} against PyTorch", round(ratio, 4), "times as fast")


def loss_figures():
    for mode in ("fp32", "bf16-sr"):
        cpu, gpu = ({step["step"]: step["loss"]
                     for step in read_json_lines(f"job/{mode}-{kind}/metrics.jsonl")}
                    for kind in ("cpu", "cuda"))
        if cpu and cpu.keys() == gpu.keys():
            difference = max(abs(gpu[step] - cpu[step]) / abs(cpu[step]) for step in cpu)
            yield figure(f"loss of {mode} over {len(cpu)} steps, beside the CPU's", difference,
                         "largest relative difference")


def print_table(sections, figures):
    print()
    for section in sections:
        print(f"{section['name']:20} {section['status']:10} {section['note']}".rstrip())
    print()
    for entry in figures:
        line = f"{entry['name']:48} {entry['value']:>14.6g} {entry['unit']}"
        if entry["target"] is not None:
            line += f", target {entry['target']:g}: {'met' if entry['met'] else 'MISSED'}"
        print(line)


def main():
    sections = read_sections()
    kernels, runs = read_json_lines("kernels"), read_json_lines("runs")
    figures = [*kernel_figures(kernels), *training_figures(runs), *loss_figures()]
    bad = any(section["kind"] == "test" and section["status"] not in ("passed", "skipped")
              for section in sections)
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
