#!/usr/bin/env python3
"""What the optimisation level of a PJRT plugin's compiler costs and brings, and a first start beside a second one.

  bench/pjrt_levels.py [--skein build/skein] [--plugins PATH ...] [--levels LEVEL ...] [--steps 12] [--rounds 3]
                       [--precision bf16-sr] [--folder DIR]

The demo model (configs/demo.toml) on the headers of this machine. For each plugin (those that scripts/test_tools.sh
unpacked) and each level ("": the compiler's default; 0 to 3; or options of the compiler) a run with an empty
cache, then one more that finds all programs there, ROUNDS times. Printed, as medians: seconds to compile all programs
in the first start and in the second, how many times as fast that is, and tokens a second, of the steps after the third.
"""
import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEVELS = ["", "0", "1", "2", "3", "xla_llvm_disable_expensive_passes=true"]
COMPILED = re.compile(r"compiled (\d+) programs? for .* in ([\d.]+) s, (\d+) of them from the cache")


def plugins_here():
    return sorted(glob.glob(os.path.join(ROOT, ".deps", "*cpu*-plugin-*", "*", "*.so")) +
                  glob.glob(os.path.join(ROOT, ".deps", "*cpu*-plugin-*", "*", "*", "*.so")))


def train(args, plugin, level, name):
    """Programs, seconds for them, how many were found in the cache, and tokens a second."""
    run = os.path.join(args.folder, name)
    shutil.rmtree(run, ignore_errors=True)
    settings = {"run.dir": run, "run.steps": args.steps, "data.train": f"{args.folder}/corpus.arrow",
                "data.validation": "", "data.tokenizer": f"{args.folder}/tokenizer", "checkpoint.every_steps": 0,
                "precision.mode": args.precision, "log.tensorboard": "false", "optimizer.warmup_steps": 2,
                "device.kind": "pjrt", "device.pjrt_plugin": plugin, "device.optimization_level": f'"{level}"',
                "device.compile_cache": f"{args.folder}/cache"}
    command = [args.skein, "train", os.path.join(ROOT, "configs", "demo.toml")]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    done = subprocess.run(command, capture_output=True, text=True)
    found = COMPILED.search(done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        steps = [json.loads(line) for line in lines]
    speed = statistics.median(step["tokens_per_s"] for step in steps[3:] if "tokens_per_s" in step)
    return int(found[1]), float(found[2]), int(found[3]), speed


def measure(args, plugin, level):
    first, second, speeds = [], [], []
    for _ in range(args.rounds):
        shutil.rmtree(f"{args.folder}/cache", ignore_errors=True)
        programs, seconds, cached, speed = train(args, plugin, level, "first")
        first.append(seconds)
        speeds.append(speed)
        programs, seconds, cached, speed = train(args, plugin, level, "second")
        if cached != programs:
            sys.exit(f"{plugin}, level {level}: {cached} of {programs} programs were in the cache")
        second.append(seconds)
        speeds.append(speed)
    return programs, statistics.median(first), statistics.median(second), statistics.median(speeds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skein", default=os.path.join(ROOT, "build", "skein"))
    parser.add_argument("--plugins", nargs="+", default=plugins_here())
    parser.add_argument("--levels", nargs="+", default=LEVELS)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", default="bf16-sr")
    parser.add_argument("--folder")
    args = parser.parse_args()
    if not args.plugins:
        sys.exit("there is no plugin: scripts/test_tools.sh unpacks two, or name one with --plugins")
    with tempfile.TemporaryDirectory() as temporary:
        args.folder = args.folder or temporary
        if not os.path.exists(f"{args.folder}/tokenizer"):
            subprocess.run([os.path.join(ROOT, "bench", "demo_corpus.sh"), args.skein, args.folder], check=True)
        print("| plugin | level | programs | first start | second start | times as fast | tokens/s |")
        print("|---|---|---|---|---|---|---|")
        for plugin in args.plugins:
            for level in args.levels:
                programs, first, second, speed = measure(args, plugin, level)
                print(f"| {os.path.basename(plugin)} | {level or 'default'} | {programs} | {first:.2f} s | {second:.2f} s "
                      f"| {first / second:.0f} | {speed:.0f} |", flush=True)


if __name__ == "__main__":
    main()
