#!/usr/bin/env python3
"""The job array that `skein data … --slurm` prints, submitted to a Slurm cluster of this machine.

  shards_test.py SKEIN FOLDER

The shards of `ingest` and of `clean` that tasks on several nodes make, one of which is lost and comes
back, must be those that one process makes, byte for byte. Ends with 77, which ctest shows as skipped,
where Slurm is not installed.
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
WORDS = "the river was frozen and we walked to mill with a lamp that nobody in house had seen before winter came of be have".split()


def write_inputs(folder):
    rng = random.Random(3)
    os.mkdir(folder)
    for number in range(8):
        with open(f"{folder}/{number}.jsonl", "w") as out:
            for _ in range(200):
                lines = [" ".join(rng.choices(WORDS, k=rng.randint(4, 20))) + "." for _ in range(rng.randint(2, 20))]
                out.write(json.dumps({"text": "\n".join(lines)}) + "\n")


def files_of(folder):
    return sorted(os.listdir(folder))


def shards_of_cluster(cluster, folder, command):
    """Submits the script that the command prints, and loses a node while its tasks wait or run."""
    script = os.path.join(folder, "array.sbatch")
    with open(script, "w") as out:
        subprocess.run([*command, "--slurm"], check=True, stdout=out, cwd=folder)
    job = cluster.run("sbatch", "--parsable", script, cwd=folder).stdout.strip()
    cluster.lose_node("node2")
    wait_until(lambda: cluster.node_state("node2").startswith("DOWN"), "Slurm notices the lost node", 90)
    cluster.start_node("node2")
    cluster.wait_for_nodes(["node2"])
    ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
    wait_until(lambda: all(task["JobState"] in ended for task in cluster.job(job)), "all tasks have ended", 120)
    return [task["JobState"] for task in cluster.job(job)]


def main():
    skein, parent = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    missing = missing_programs()
    if missing:
        print(f"skipped: {', '.join(missing)} not installed: scripts/setup.sh does it")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="shards-", dir=parent)
    write_inputs(folder + "/in")
    with Cluster(os.path.join(folder, "cluster"), nodes=2, cpus=1) as cluster:
        for name, options in (("ingest", []), ("clean", ["--set", "top_2_gram=0.5", "--remove", "email"])):
            command = [skein, "data", name, *options, "--shards", str(SHARDS), "in", "--out"]
            subprocess.run([*command, f"{name}-alone"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            states = shards_of_cluster(cluster, folder, [*command, f"{name}-array"])
            alone, array = f"{folder}/{name}-alone", f"{folder}/{name}-array"
            same = files_of(alone) == files_of(array) and len(files_of(alone)) == 2 * SHARDS
            same = same and all(filecmp.cmp(f"{alone}/{file}", f"{array}/{file}", shallow=False) for file in files_of(alone))
            print(f"{name}: {len(states)} tasks, {states.count('COMPLETED')} completed; shards are "
                  f"{'the same' if same else 'not the same'} as of one process")
            if states != ["COMPLETED"] * SHARDS or not same:
                print(f"shards_test: {states}; what was left lies in {folder}")
                return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
