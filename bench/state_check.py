#!/usr/bin/env python3
"""What checking the state for silent corruption costs.

  state_check.py SKEIN FOLDER [--workers 4] [--steps 40] [--rounds 3]

The demo model (configs/models/demo-10m.json) on text that this script makes, without and with run.check_state, in
turns: the time of a step, its ratio, and the share of a step that the check itself measures, waiting for others
included.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "survival"))
import supervised  # noqa: E402

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "models")
SKIPPED_STEPS = 5  # the first ones take longer


def train(args, data, name, checks):
    run = os.path.join(args.folder, name)
    settings = {"run.dir": run, "run.steps": args.steps, "model.hf_config": os.path.join(MODELS, "demo-10m.json"),
                "data.train": f"{data}/corpus.arrow", "data.tokenizer": f"{data}/tokenizer",
                "data.sequence_length": 512, "batch.global_sequences": 2 * args.workers,
                "batch.micro_sequences": 1, "optimizer.learning_rate": 1e-3, "checkpoint.every_steps": 10 ** 6,
                "checkpoint.memory_every_steps": 0, "launch.workers": args.workers, "device.threads": 1,
                "run.check_state": checks, "log.tensorboard": "false"}
    config = os.path.join(args.folder, "empty.toml")
    open(config, "w").close()
    command = [args.skein, "train", config]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True, capture_output=True)
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        return [json.loads(line) for line in lines][SKIPPED_STEPS:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.skein = os.path.abspath(args.skein)
    os.makedirs(args.folder, exist_ok=True)
    data = supervised.make_data(args.skein, args.folder)
    medians, shares = {"false": [], "true": []}, []
    for round_ in range(args.rounds):
        for checks in ("false", "true"):
            steps = train(args, data, f"check-{checks}-{round_}", checks)
            medians[checks].append(statistics.median(step["step_ms"] for step in steps))
            spent = [step["state_check_ms"] for step in steps]
            told = ""
            if checks == "true":
                shares.append(sum(spent) / sum(step["step_ms"] for step in steps))
                told = f", of it checking {statistics.median(spent):.2f} ms, in all {100 * shares[-1]:.2f} %"
            print(f"check_state={checks:5} median step {medians[checks][-1]:.1f} ms{told}", flush=True)
    ratios = sorted(one / other for one, other in zip(medians["true"], medians["false"]))
    print(f"with / without, of the median step: {', '.join(f'{ratio:.3f}' for ratio in ratios)}; median "
          f"{statistics.median(ratios):.3f}; the check itself {100 * statistics.median(shares):.2f} % of a step")


if __name__ == "__main__":
    main()
