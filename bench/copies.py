#!/usr/bin/env python3
"""What copies of the state in memory cost, and what going on from them takes.

  copies.py SKEIN FOLDER [--workers 4] [--steps 60] [--rounds 3]

The demo model (configs/models/demo-10m.json) on text that this script makes. First runs without and with copies,
in turns: the median time of a step, and its ratio. Then a worker is killed in the middle of a run, once with
copies and once without: seconds from the kill to the end of the next step, and how many steps were done again.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "survival"))
import supervised  # noqa: E402

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "models")


def command(args, data, run, every):
    settings = {"run.dir": run, "run.steps": args.steps, "model.hf_config": os.path.join(MODELS, "demo-10m.json"),
                "data.train": f"{data}/corpus.arrow", "data.tokenizer": f"{data}/tokenizer",
                "data.sequence_length": 512, "batch.global_sequences": 2 * args.workers,
                "batch.micro_sequences": 1, "optimizer.learning_rate": 1e-3, "checkpoint.every_steps": 10,
                "checkpoint.memory_every_steps": every, "launch.workers": args.workers, "device.threads": 1,
                "log.tensorboard": "false"}
    config = os.path.join(args.folder, "empty.toml")
    open(config, "w").close()
    return [args.skein, "train", config] + [part for key, value in settings.items()
                                            for part in ("--set", f"{key}={value}")]


def train(args, data, name, every):
    run = os.path.join(args.folder, name)
    out = subprocess.run(command(args, data, run, every), capture_output=True, text=True, check=True)
    said = [line.split(" ", 2)[2] for line in out.stderr.splitlines() if "is copied to memory" in line]
    steps = supervised.metrics(run)[10:]
    return (statistics.median(step["step_ms"] for step in steps),
            sum(step["replication_stall_ms"] for step in steps) / sum(step["step_ms"] for step in steps),
            sum(step["step_ms"] for step in steps) / len(steps), said)


def kill(args, data, name, every):
    run = os.path.join(args.folder, name)
    process = subprocess.Popen(command(args, data, run, every), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    while len(supervised.metrics(run)) < 25:
        time.sleep(0.01)
    workers = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    struck = time.time()
    os.kill(int(workers[-1]), signal.SIGKILL)
    known = supervised.metrics(run)[-1]["step"]
    process.wait()
    starts = [event for event in supervised.events(run, "start")]
    after = [step for step in supervised.metrics(run) if step["start"] == starts[-1]["number"]]
    again = known - starts[-1]["step"]
    new = next(step for step in after if step["step"] > known)
    print(f"{name:8} goes on from {os.path.basename(starts[-1]['from'])}: first step after "
          f"{after[0]['time'] - struck:.2f} s, first new step after {new['time'] - struck:.2f} s, "
          f"{again} steps done again", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    data = supervised.make_data(args.skein, args.folder)
    results = {0: [], -1: []}
    for round_ in range(args.rounds):
        for every, name in ((0, "without"), (-1, "with")):
            results[every].append(train(args, data, f"{name}-{round_}", every))
            median, stall, mean, said = results[every][-1]
            print(f"{name:8} median step {median:.1f} ms, mean {mean:.1f} ms, standing still {100 * stall:.2f} %"
                  f"{'; ' + said[0] if said else ''}", flush=True)
    pairs = zip(results[-1], results[0])
    ratios = sorted(one[2] / other[2] for one, other in pairs)
    print(f"with / without, of the mean step: {', '.join(f'{ratio:.3f}' for ratio in ratios)}; "
          f"median {statistics.median(ratios):.3f}")
    kill(args, data, "memory", -1)
    kill(args, data, "storage", 0)


if __name__ == "__main__":
    main()
