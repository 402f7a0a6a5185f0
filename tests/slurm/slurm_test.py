#!/usr/bin/env python3
"""Trains on a Slurm cluster of this machine, with the real daemons, while things go wrong.

  slurm_test.py SKEIN FOLDER

Four ways to start one run must give the same bits: workers of one machine, srun, mpirun, and a job of
`skein launch --slurm` over two nodes, of which a worker is killed, which is told to save and requeued, and
which loses a node and goes on with another. Also what a mistake, scancel, and a supervisor that dies lead to.
Ends with 77, which ctest shows as skipped, where Slurm is not installed.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survival"))
import supervised  # noqa: E402
from cluster import Cluster, command_of, environment_of, kill, missing_programs, wait_until  # noqa: E402
import services  # noqa: E402

STEPS = 150
SKIPPED = 77
NODES_3_AND_4 = "--sbatch=--exclude=node1,node2"  # while the others lose a node


class Trial:
    def __init__(self, skein, folder):
        self.skein, self.folder = skein, folder
        self.data = supervised.make_data(skein, folder)
        self.failures = []

    def expect(self, holds, what):
        print(f"{'ok' if holds else 'FAILED'}: {what}", flush=True)
        if not holds:
            self.failures.append(what)

    def run_dir(self, name):
        return os.path.join(self.folder, "runs", name)

    def config(self, name, nodes="1", workers=2):
        path = os.path.join(self.folder, f"{name}.toml")
        with open(path, "w") as out:
            out.write(supervised.CONFIG.format(dir=self.run_dir(name), rendezvous="", steps=STEPS, data=self.data,
                                         workers=workers, nodes=nodes, ranks=4, sequences=8))
        return path

    def step(self, name):
        return supervised.newest_step(self.run_dir(name))[1]

    def wait_for_step(self, name, step, seconds=600):
        wait_until(lambda: self.step(name) >= step, f"step {step} of {name}", seconds)

    def expect_same_bits(self, name, reference):
        expected, found = supervised.losses(self.run_dir(reference)), supervised.losses(self.run_dir(name))
        wrong = [step for step in range(1, STEPS + 1) if expected[step] != found.get(step)]
        self.expect(not wrong, f"{name}: the losses of all {STEPS} steps are those of {reference}"
                    + (f", but not of {wrong[:5]}" if wrong else ""))
        same = supervised.weights(self.skein, self.run_dir(name), STEPS) == self.weights
        self.expect(same, f"{name}: the weights are those of {reference}, to the bit")

    def log(self, name, job):
        with open(os.path.join(self.run_dir(name), "logs", f"slurm-{job}.log")) as log:
            return log.read()


def submit(trial, cluster, config, *options):
    done = cluster.run(trial.skein, "launch", "--slurm", config, *options)
    return done.stdout.strip()


def workers_and_supervisors(cluster, node, name):
    """The processes of the run on that node."""
    workers, supervisors = [], []
    for pid in cluster.tasks_of(node):
        command = command_of(pid)
        if command[1:2] != [b"train"] or not command[2].endswith(f"/{name}.toml".encode()):
            continue
        is_worker = any(variable.startswith(b"SKEIN_RANK=") for variable in environment_of(pid))
        (workers if is_worker else supervisors).append(pid)
    return workers, supervisors


def run_alone(trial):
    subprocess.run([trial.skein, "train", trial.config("alone", workers=4)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    trial.weights = supervised.weights(trial.skein, trial.run_dir("alone"), STEPS)


def with_other_launchers(trial, cluster):
    ranks = ["--set", "launch.workers=1"]
    cluster.run("srun", "--nodes=2", "--ntasks-per-node=2", trial.skein, "train", trial.config("srun"), *ranks)
    trial.expect_same_bits("srun", "alone")
    refused = cluster.run("srun", "--nodes=2", "--ntasks-per-node=2", trial.skein, "train",
                          trial.config("ranks", nodes="2", workers=1), check=False)
    trial.expect(refused.returncode == 2 and "leave launch.nodes out" in refused.stderr,
                 "several tasks a node are refused where launch.nodes asks for supervisors")
    mpirun = services.program("mpirun")
    if mpirun is None:
        trial.expect(False, "mpirun of Open MPI is there")
        return
    subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "4",
                    trial.skein, "train", trial.config("mpirun"), *ranks], check=True, env=services.environment(),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    trial.expect_same_bits("mpirun", "alone")


def through_faults(trial, cluster):
    job = submit(trial, cluster, trial.config("faults", nodes="2"), "--time", "30", "--sbatch=--exclude=node4")
    state = lambda: cluster.job(job)[0]["JobState"]
    trial.wait_for_step("faults", 30)
    first_nodes = cluster.job(job)[0]["NodeList"]

    workers, _ = workers_and_supervisors(cluster, "node2", "faults")
    kill(workers[0])
    trial.wait_for_step("faults", 60)
    trial.expect(state() == "RUNNING", "a worker that is killed is replaced within the job")

    cluster.run("scancel", "--signal=USR1", job)  # as Slurm does before the time is up
    wait_until(lambda: state() != "RUNNING", "the job stops")
    trial.expect("saved; run again to continue" in trial.log("faults", job), "SIGUSR1 makes it save")
    trial.wait_for_step("faults", trial.step("faults") + 30)
    trial.expect(cluster.job(job)[0]["Restarts"] == "1", "it is requeued and goes on")

    began = time.monotonic()
    cluster.lose_node("node2")
    wait_until(lambda: state() != "RUNNING", "Slurm notices the lost node")
    noticed = time.monotonic() - began
    done = cluster.wait_for_state(job, ["COMPLETED", "FAILED"], 90)[0]
    print(f"Slurm noticed the lost node after {noticed:.1f} s; done {time.monotonic() - began:.1f} s after it")
    trial.expect(done["JobState"] == "COMPLETED" and done["Restarts"] == "2",
                 f"it goes on without the lost node: {first_nodes}, then {done['NodeList']}")
    trial.expect_same_bits("faults", "alone")


def when_a_supervisor_dies(trial, cluster):
    job = submit(trial, cluster, trial.config("orphaned", nodes="2"), "--grace", "2", NODES_3_AND_4)
    trial.wait_for_step("orphaned", 30)
    _, supervisors = workers_and_supervisors(cluster, "node4", "orphaned")
    kill(supervisors[0])
    done = cluster.wait_for_state(job, ["COMPLETED", "FAILED"], 60)[0]
    trial.expect(done["JobState"] == "COMPLETED" and done["Restarts"] == "0",
                 "a supervisor that dies is started again within the job")
    trial.expect("started again, 1 of 3 times" in trial.log("orphaned", job), "the log says so")
    trial.expect_same_bits("orphaned", "alone")


def what_ends_a_job(trial, cluster):
    mistaken = submit(trial, cluster, trial.config("mistaken"), "--set", "data.train=/nowhere.arrow",
                      NODES_3_AND_4)
    cancelled = submit(trial, cluster, trial.config("cancelled", nodes="2"), "--set", "run.steps=20000",
                       NODES_3_AND_4)
    done = cluster.wait_for_state(mistaken, ["COMPLETED", "FAILED"])[0]
    trial.expect(done["ExitCode"] == "2:0" and done["Restarts"] == "0", "a mistake ends the job with 2, at once")
    trial.wait_for_step("cancelled", 30)
    cluster.run("scancel", cancelled)
    wait_until(lambda: "saved; run again" in trial.log("cancelled", cancelled), "it saves")
    ended = lambda: cluster.job(cancelled)[0]["JobState"]
    wait_until(lambda: ended() not in ("RUNNING", "COMPLETING"), "its script has ended")
    trial.expect(ended() == "CANCELLED", f"scancel lets it save and ends it for good: {ended()}")


def main():
    skein, folder = os.path.abspath(sys.argv[1]), tempfile.mkdtemp(prefix="slurm-", dir=sys.argv[2])
    missing = missing_programs()
    if missing:
        print(f"skipped: {', '.join(missing)} not there: scripts/test_tools.sh unpacks it")
        return SKIPPED
    began = time.monotonic()
    trial = Trial(skein, folder)
    run_alone(trial)
    with Cluster(os.path.join(folder, "cluster"), nodes=4) as cluster, ThreadPoolExecutor() as pool:
        with_other_launchers(trial, cluster)
        # They mostly wait for Slurm.
        parts = [pool.submit(part, trial, cluster)
                 for part in (through_faults, when_a_supervisor_dies, what_ends_a_job)]
        for part in parts:
            part.result()
    trial.expect(not cluster.left_behind(), "nothing of the cluster is left")
    print(f"{time.monotonic() - began:.0f} s")
    if trial.failures:
        print(f"slurm_test: {len(trial.failures)} failures; what was left lies in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
