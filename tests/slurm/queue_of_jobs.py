#!/usr/bin/env python3
"""A queue of small runs as one job array, while faults happen: how many succeed without a person?

  queue_of_jobs.py SKEIN FOLDER [--jobs 200] [--fault-rate 0.2] [--retries 3] [--seed 1] [--at-most 4]

`skein launch --sweep` submits a run for each seed to a Slurm cluster of this machine. Each start of a run
meets a fault with the given probability: it is killed, at some moment of its first seconds, or fails at once
as where a disk cannot be read. Besides, a node is lost and comes back. All of it is transient: the next start
meets another fate. Prints the share of runs that reached their last step, beside the share that met no fault;
fails below 98.5 %. Runs that met faults must have the losses of a run that met none.
Ends with 77, which ctest shows as skipped, where Slurm is not installed.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survival"))
import supervised  # noqa: E402
from cluster import Cluster, missing_programs, wait_until  # noqa: E402

STEPS = 30
EXPECTED_SHARE = 0.985
SKIPPED = 77

# Stands in for skein: notes each start, and lets some of them fail.
FLAKY = """#!/bin/bash
echo start >> "{folder}/starts-$SLURM_ARRAY_TASK_ID"
start=$(wc -l < "{folder}/starts-$SLURM_ARRAY_TASK_ID")
RANDOM=$(({seed} * 7919 + SLURM_ARRAY_TASK_ID * 104729 + start * 31))
fate=$((RANDOM * 32768 + RANDOM))
if ((fate % 1000 >= {per_mille})); then exec "{skein}" "$@"; fi
echo fault >> "{folder}/faults-$SLURM_ARRAY_TASK_ID"
if ((fate / 1000 % 4 == 0)); then
  echo "skein: cannot read: Input/output error" >&2
  exit 1
fi
"{skein}" "$@" &
child=$!
sleep "$((fate / 4000 % 3)).$((fate / 12000 % 10))"
kill -KILL "$child"
wait "$child"
"""


def write_flaky(args, folder):
    path = os.path.join(folder, "flaky.sh")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
        out.write(FLAKY.format(folder=folder, seed=args.seed, skein=args.skein,
                               per_mille=round(1000 * args.fault_rate)))
    return path


def lines_of(path):
    return sum(1 for _ in open(path)) if os.path.exists(path) else 0


def undisturbed_losses(args, folder, config, seed):
    run = os.path.join(folder, f"undisturbed-{seed}")
    subprocess.run([args.skein, "train", config, "--set", f"run.seed={seed}", "--set", f"run.dir={run}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return supervised.losses(run)


def work_off(args, folder, config, cluster):
    """Submits the runs, loses a node and gives it back, and waits for the last run."""
    seeds = ",".join(str(seed) for seed in range(1, args.jobs + 1))
    job = cluster.run(args.skein, "launch", "--slurm", config, "--sweep", f"run.seed={seeds}",
                      "--retries", str(args.retries), "--at-most", str(args.at_most),
                      "--program", write_flaky(args, folder)).stdout.strip()
    active = lambda: [task for task in cluster.job(job)
                      if task["JobState"] in ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING")]
    wait_until(lambda: any(task["JobState"] == "RUNNING" for task in active()), "a run begins")
    cluster.lose_node("node2")
    wait_until(lambda: cluster.node_state("node2").startswith("DOWN"), "Slurm notices the lost node")
    cluster.start_node("node2")
    cluster.wait_for_nodes(["node2"])
    wait_until(lambda: not active(), "all runs have ended", 150 * args.jobs)
    return {int(task["ArrayTaskId"]): task for task in cluster.job(job)}


def judge(args, folder, config, tasks):
    run = lambda index: os.path.join(folder, "runs", f"{index:04}")
    done = [index for index, task in tasks.items()
            if task["JobState"] == "COMPLETED" and supervised.newest_step(run(index))[1] == STEPS]
    faults = {index: lines_of(os.path.join(folder, f"faults-{index}")) for index in tasks}
    requeued = sum(int(task["Restarts"]) for task in tasks.values())
    spared = sum(1 for index in tasks if faults[index] == 0 and tasks[index]["Restarts"] == "0")
    share = len(done) / args.jobs
    print(f"{args.jobs} runs, {sum(faults.values())} faults in starts, {requeued} runs requeued from a lost node: "
          f"{100 * share:.1f} % succeeded; {100 * spared / args.jobs:.1f} % met no fault")
    if share < EXPECTED_SHARE:
        print(f"queue_of_jobs: expected at least {100 * EXPECTED_SHARE:.1f} %")
        return 1
    struck = sorted((index for index in done if faults[index] > 0), key=lambda index: -faults[index])[:3]
    for index in struck:
        if supervised.losses(run(index)) != undisturbed_losses(args, folder, config, index + 1):
            print(f"queue_of_jobs: run {index} met {faults[index]} faults and has other losses than without")
            return 1
    print(f"runs {struck}, which met the most faults, have the losses of undisturbed ones")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--fault-rate", type=float, default=0.2, help="of the starts of a run")
    parser.add_argument("--retries", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-most", type=int, default=4, help="runs at a time")
    args = parser.parse_args()
    args.skein = os.path.abspath(args.skein)
    missing = missing_programs()
    if missing:
        print(f"skipped: {', '.join(missing)} not there: scripts/test_tools.sh unpacks it")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="queue-", dir=os.path.abspath(args.folder))
    began = time.monotonic()
    config = os.path.join(folder, "run.toml")
    with open(config, "w") as out:
        out.write(supervised.CONFIG.format(dir=os.path.join(folder, "runs"), rendezvous="", steps=STEPS,
                                     data=supervised.make_data(args.skein, folder), workers=1, nodes="1", ranks=1,
                                     sequences=4).replace("every_steps = 20", "every_steps = 5"))
    with Cluster(os.path.join(folder, "cluster"), nodes=args.at_most, cpus=1) as cluster:
        tasks = work_off(args, folder, config, cluster)
    code = judge(args, folder, config, tasks)
    print(f"{time.monotonic() - began:.0f} s")
    if code == 0:
        shutil.rmtree(folder)
    else:
        print(f"queue_of_jobs: what was left lies in {folder}")
    return code


if __name__ == "__main__":
    sys.exit(main())
