#!/usr/bin/env python3
"""The job arrays that `skein data … --slurm` prints, submitted to a Slurm cluster of this machine.

  shards_test.py SKEIN FOLDER

The shards of `ingest` and of `clean` that tasks on several nodes make, one of which is lost and comes
back, must be those that one process makes, byte for byte; and so the corpora of `dedup`, whose inputs
an array signs before one job clusters and writes. Ends with 77, which ctest shows as skipped, where
Slurm is not installed.
"""
import filecmp
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import Cluster, missing_programs, wait_until  # noqa: E402

SKIPPED = 77
SHARDS = 4
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
PIECE_BYTES = 33 << 20  # a file of so many is read and signed by itself
WORDS = "the river was frozen and we walked to mill with a lamp that nobody in house had seen before winter came of be have".split()


def write_inputs(folder):
    rng = random.Random(3)
    os.mkdir(folder)
    for number in range(8):
        with open(f"{folder}/{number}.jsonl", "w") as out:
            for _ in range(200):
                lines = [" ".join(rng.choices(WORDS, k=rng.randint(4, 20))) + "." for _ in range(rng.randint(2, 20))]
                out.write(json.dumps({"text": "\n".join(lines)}) + "\n")


def write_large_inputs(folder):
    """The documents of write_inputs, some of them twice, in files of which blank lines make most."""
    os.mkdir(folder)
    lines = [line for number in range(8) for line in open(f"{os.path.dirname(folder)}/in/{number}.jsonl")]
    random.Random(4).shuffle(lines)
    for number in range(SHARDS):
        with open(f"{folder}/{number}.jsonl", "w") as out:
            out.writelines(lines[number::SHARDS] + lines[:50])
            out.write("\n" * PIECE_BYTES)


def files_of(folder):
    return sorted(os.listdir(folder))


def shards_of_cluster(cluster, folder, command):
    """Submits the script that the command prints, and loses a node while its tasks wait or run."""
    script = os.path.join(folder, "array.sbatch")
    with open(script, "w") as out:
        subprocess.run([*command, "--slurm"], check=True, stdout=out, cwd=folder)
    job = cluster.run("sbatch", "--parsable", script, cwd=folder).stdout.strip()
    lose_a_node(cluster)
    return states_at_the_end(cluster, job)


def lose_a_node(cluster):
    cluster.lose_node("node2")
    wait_until(lambda: cluster.node_state("node2").startswith("DOWN"), "Slurm notices the lost node")
    cluster.start_node("node2")
    cluster.wait_for_nodes(["node2"])


def states_at_the_end(cluster, job):
    wait_until(lambda: all(task["JobState"] in ENDED for task in cluster.job(job)), "all tasks have ended")
    return [task["JobState"] for task in cluster.job(job)]


def deduplicated(cluster, folder, skein):
    """Whether an array and the job behind it write what one process does."""
    write_large_inputs(f"{folder}/large")
    command = [skein, "data", "dedup", "--shards", "3", "--passages", "lines", "--memory", "256MiB", "large", "--out"]
    subprocess.run([*command, "dedup-alone"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    script = os.path.join(folder, "dedup.sh")
    with open(script, "w") as out:
        subprocess.run([*command, "dedup-array", "--slurm", "--machines", str(SHARDS)], check=True, stdout=out, cwd=folder)
    job = cluster.run("bash", script, "--chdir", folder, "--output", f"{folder}/dedup-%j.log", cwd=folder).stdout.strip()
    lose_a_node(cluster)
    states = states_at_the_end(cluster, job)
    log = open(f"{folder}/dedup-{job}.log").read()
    signed = f"{SHARDS} of {SHARDS} pieces were signed before"
    same = all_same(f"{folder}/dedup-alone", f"{folder}/dedup-array", 2 * 3)
    print(f"dedup: {states[0]}, {signed if signed in log else log}; shards are "
          f"{'the same' if same else 'not the same'} as of one process")
    return states == ["COMPLETED"] and same and signed in log and not os.path.exists(f"{folder}/dedup-array.work")


def all_same(a, b, num_files):
    return (files_of(a) == files_of(b) and len(files_of(a)) == num_files
            and all(filecmp.cmp(f"{a}/{file}", f"{b}/{file}", shallow=False) for file in files_of(a)))


def main():
    skein, parent = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    missing = missing_programs()
    if missing:
        print(f"skipped: {', '.join(missing)} not there: scripts/test_tools.sh unpacks it")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="shards-", dir=parent)
    write_inputs(folder + "/in")
    with Cluster(os.path.join(folder, "cluster"), nodes=2, cpus=1) as cluster:
        for name, options in (("ingest", []), ("clean", ["--set", "top_2_gram=0.5", "--remove", "email"])):
            command = [skein, "data", name, *options, "--shards", str(SHARDS), "in", "--out"]
            subprocess.run([*command, f"{name}-alone"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            states = shards_of_cluster(cluster, folder, [*command, f"{name}-array"])
            same = all_same(f"{folder}/{name}-alone", f"{folder}/{name}-array", 2 * SHARDS)
            print(f"{name}: {len(states)} tasks, {states.count('COMPLETED')} completed; shards are "
                  f"{'the same' if same else 'not the same'} as of one process")
            if states != ["COMPLETED"] * SHARDS or not same:
                print(f"shards_test: {states}; what was left lies in {folder}")
                return 1
        if not deduplicated(cluster, folder, skein):
            print(f"shards_test: what was left lies in {folder}")
            return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
