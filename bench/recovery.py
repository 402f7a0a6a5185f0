#!/usr/bin/env python3
"""How long a run stands still after a failure: what is known when, and where the time goes.

  recovery.py SKEIN FOLDER [--rounds 10] [--workers 4] [--nodes 1] [--kinds exit;hang;host] [--model demo|tiny]
              [--storage] [--hang-timeout 10] [--between 12] [--seed 1]

Trains on text that this script makes, and strikes one worker after the other, at a random moment of a step:
`exit` is SIGKILL to a worker, `hang` SIGSTOP to one, `host` SIGKILL to a supervisor and all its workers (with
--nodes 2 or more; it is started again at once). Copies are made as often as the default has it; with --storage
there are none, and checkpoints every 10 steps. A round ends when the run has taken two new steps.

Prints the p50, p99 and most of: failure → known to the leading machine, known → workers started, started → first
step begins (libraries, configuration, plan, allocation, reading the state), the first step, and their sums; and how
many steps were redone. `hang` and `host` are known after launch.hang_timeout_s (--hang-timeout, 10) and the rendezvous's deadline.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from random import Random

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "survival"))
import supervised  # noqa: E402

from file_faults import SETTINGS  # noqa: E402
from supervised import events, metrics  # noqa: E402

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "models")
DEMO = {"model.hf_config": os.path.join(MODELS, "demo-10m.json"), "data.sequence_length": 512}
TINY = {key: value for key, value in SETTINGS.items() if key.startswith(("model.", "data."))}
PARTS = ("failure → known", "known → workers started", "started → first step begins", "the first step",
         "failure → next step begins", "failure → next step's end")


def command(args, data, run, config):
    settings = {"run.dir": run, "run.steps": 10 ** 6, "data.train": f"{data}/corpus.arrow",
                "data.tokenizer": f"{data}/tokenizer", **(DEMO if args.model == "demo" else TINY),
                "batch.global_sequences": 2 * args.workers * args.nodes, "batch.micro_sequences": 1,
                "optimizer.learning_rate": 1e-3, "checkpoint.every_steps": 10,
                "checkpoint.memory_every_steps": 0 if args.storage else -1,
                "launch.workers": args.workers, "launch.nodes": args.nodes, "launch.hang_timeout_s": args.hang_timeout,
                "launch.max_restarts": 100000, "device.threads": 1, "log.tensorboard": "false"}
    open(config, "w").close()
    return [args.skein, "train", config] + [part for key, value in settings.items()
                                            for part in ("--set", f"{key}={value}")]


class Machine:
    def __init__(self, command_line, name, folder):
        self.command, self.name = command_line, name
        self.log = open(os.path.join(folder, name + ".log"), "a")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, SKEIN_NODE=self.name))

    def workers(self):
        return supervised.Node.workers(self)


def wait_for(condition, what, machines, seconds=180):
    deadline = time.time() + seconds
    while not condition():
        for machine in machines:
            if machine.process.poll() is not None:
                raise RuntimeError(f"recovery: {machine.name} ended with {machine.process.returncode}: "
                                   f"see {machine.log.name}")
        if time.time() > deadline:
            raise TimeoutError(f"recovery: {what} did not come within {seconds} s")
        time.sleep(0.02)


def strike(kind, machines, round_):
    """The moment of the failure, in Unix seconds."""
    machine = machines[round_ % len(machines)]
    workers = machine.workers()
    moment = time.time()
    if kind == "host":
        for pid in [machine.process.pid, *workers]:
            supervised.send(pid, signal.SIGKILL)
        machine.process.wait()
        machine.start()
    else:
        supervised.send(workers[round_ % len(workers)], signal.SIGKILL if kind == "exit" else signal.SIGSTOP)
    return moment


def measure(run, moment, starts, newest):
    """Seconds of each of PARTS, and the steps that were done again."""
    start = events(run, "start")[starts]
    generation = [event for event in events(run, "generation") if event["time"] <= start["time"]][-1]
    first = next(step for step in metrics(run) if step["start"] == start["number"])
    known = generation["time"] - generation["known_seconds"]
    begun = first["time"] - first["step_ms"] / 1e3
    return [known - moment, generation["time"] - known, begun - generation["time"], first["time"] - begun,
            begun - moment, first["time"] - moment], max(0, newest - start["step"])


def tell(kind, rows, redone):
    print(f"{kind}: {len(rows)} times")
    for i, part in enumerate(PARTS):
        values = sorted(row[i] for row in rows)
        p99 = values[min(len(values) - 1, int(0.99 * len(values)))]
        print(f"  {part:28} p50 {statistics.median(values):6.3f} s   p99 {p99:6.3f} s   most {values[-1]:6.3f} s")
    print(f"  steps redone: p50 {statistics.median(redone):.0f}, most {max(redone)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=10, help="of each kind")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--kinds", default="exit;hang")
    parser.add_argument("--model", choices=("demo", "tiny"), default="tiny")
    parser.add_argument("--hang-timeout", type=float, default=10)
    parser.add_argument("--between", type=int, default=12, help="steps from one round to the next")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--storage", action="store_true", help="no copies in memory")
    args = parser.parse_args()
    args.skein = os.path.abspath(args.skein)
    random = Random(args.seed)
    if "host" in args.kinds and args.nodes < 2:
        parser.error("--kinds host needs --nodes 2 or more")
    os.makedirs(args.folder, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="recovery-", dir=os.path.abspath(args.folder))
    data, run = supervised.make_data(args.skein, folder), os.path.join(folder, "run")
    line = command(args, data, run, os.path.join(folder, "empty.toml"))
    machines = [Machine(line, f"node{i}", folder) for i in range(args.nodes)]
    try:
        wait_for(lambda: os.path.exists(f"{run}/metrics.jsonl") and len(metrics(run)) >= args.between, "a step", machines)
        for kind in args.kinds.split(";"):
            rows, redone = [], []
            for round_ in range(args.rounds):
                starts, before = len(events(run, "start")), len(metrics(run))
                wait_for(lambda: len(metrics(run)) >= before + args.between, "a step", machines)
                time.sleep(random.random() * metrics(run)[-1]["step_ms"] / 1e3)
                newest_before = metrics(run)[-1]["step"]
                moment = strike(kind, machines, round_)
                wait_for(lambda: len(events(run, "start")) > starts and
                         sum(step["start"] > starts for step in metrics(run)) >= 2, "a step after the failure", machines)
                lost = [step["step"] for step in metrics(run) if step["start"] <= starts]
                row, again = measure(run, moment, starts, max(lost + [newest_before]))
                rows.append(row)
                redone.append(again)
            tell(kind, rows, redone)
    finally:
        for machine in machines:
            machine.process.terminate()
        for machine in machines:
            machine.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
