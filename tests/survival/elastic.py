#!/usr/bin/env python3
"""Takes one of four machines away from a run and gives it back, and times how long training pauses.

  elastic.py SKEIN FOLDER [--rounds 3] [--demo]

Each supervisor on this machine stands for one (SKEIN_NODE), with one worker; launch.nodes = "3:4". In each
round one is killed, the others go on as three, it is started again, and they are four. For each change:

  detected  from the kill until the others know: they wait 10 s for a machine that says nothing
  pause     from then, or for a machine that comes back from the last step of the three, to the beginning of
            the next step

Every step must have the loss of a quiet run in one machine, and the processes of the survivors must be those
of the start. With --demo the model is configs/models/demo-10m.json, else a tiny one.
"""
import argparse
import os
import statistics
import sys
import time

import supervised

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "models", "demo-10m.json")


def wait_for(what, condition, patience=600):
    deadline = time.time() + patience
    while not condition():
        if time.time() > deadline:
            sys.exit(f"elastic: {what} did not happen within {patience} s")
        time.sleep(0.02)


def generations(run):
    try:
        return supervised.events(run, "generation")
    except FileNotFoundError:
        return []


def steps(run):
    """(start, step, when it began, when it ended) of every step, in order of time."""
    return [(line["start"], line["step"], line["time"] - line["step_ms"] / 1e3, line["time"])
            for line in supervised.metrics(run)]


def wait_for_steps(run, machines):
    """Until a generation of so many machines has done three steps."""
    def done():
        made = generations(run)
        size = len(made[-1]["hosts"]) if made else 4
        since = made[-1]["time"] if made else 0
        return size == machines and sum(began > since for _, _, began, _ in steps(run)) >= 3
    wait_for(f"training on {machines} machines", done)


def pause_after(run, moment):
    """From the last step that ended before the change at `moment` to the first that began after it."""
    return next(began for _, _, began, _ in steps(run) if began > moment)


def workers_of(machines):
    return {machine.name: machine.workers() for machine in machines}


def strike(run, machines, index):
    others = [machine for machine in machines if machine is not machines[index]]
    before = workers_of(others)
    known = len(generations(run))
    struck = time.time()
    machines[index].process.kill()
    machines[index].process.wait()
    wait_for("a generation of three", lambda: len(generations(run)) > known)
    left = generations(run)[known]
    knew = left["time"] - left["known_seconds"]
    wait_for_steps(run, 3)
    three = knew - struck, pause_after(run, left["time"]) - knew
    known = len(generations(run))
    machines[index].start()
    wait_for("a generation of four", lambda: len(generations(run)) > known)
    wait_for_steps(run, 4)
    joined = generations(run)[known]
    last = max(ended for _, _, _, ended in steps(run) if ended <= joined["time"])
    four = pause_after(run, joined["time"]) - last
    if workers_of(others) != before:
        sys.exit(f"elastic: the survivors' workers were {before}, and are {workers_of(others)}")
    return *three, four


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--demo", action="store_true")
    args = parser.parse_args()
    args.skein, folder, data = supervised.work_folder(args, "elastic")
    network = supervised.Network(4, False)

    def config(name, nodes, workers, count):
        run, path = os.path.join(folder, name), os.path.join(folder, name + ".toml")
        text = supervised.CONFIG.format(dir=run, steps=count, data=data, workers=workers, nodes=nodes, ranks=4,
                                  rendezvous="", sequences=8)
        if args.demo:
            begin, end = text.index("[model]"), text.index("[data]")
            text = f'{text[:begin]}[model]\nhf_config = "{MODEL}"\n{text[end:]}'.replace(
                "sequence_length = 64", "sequence_length = 512")
        with open(path, "w") as out:
            out.write(text)
        return run, path

    run, path = config("elastic", "3:4", 1, 1_000_000)
    machines = [supervised.Node(args.skein, path, f"m{i}", folder, network, i) for i in range(4)]
    try:
        wait_for_steps(run, 4)
        results = []
        for index in range(args.rounds):
            results.append(strike(run, machines, 1 + index % 3))
            print("4 → 3 detected after {:.2f} s, pause {:.2f} s; 3 → 4 pause {:.2f} s".format(*results[-1]),
                  flush=True)
        for machine in machines:
            machine.process.terminate()
        codes = [machine.process.wait(60) for machine in machines]
    finally:
        for machine in machines:
            if machine.process.poll() is None:
                machine.process.kill()
    if codes != [75] * 4:
        sys.exit(f"elastic: the supervisors ended with {codes}, expected 75: see {folder}")
    for name, values in zip(("4 → 3 detected", "4 → 3 pause", "3 → 4 pause"), zip(*results)):
        print(f"{name}: median {statistics.median(values):.2f} s, most {max(values):.2f} s")
    found = supervised.losses(run)
    quiet, path = config("quiet", "1", 4, max(found))
    supervised.Node(args.skein, path, "quiet", folder, network, 0).process.wait()
    expected = supervised.losses(quiet)
    wrong = [step for step in expected if found.get(step) != expected[step]]
    if wrong or not expected:
        sys.exit(f"elastic: {len(wrong)} of {len(expected)} losses differ from the quiet run's: see {folder}")
    print(f"{len(expected)} losses are those of the quiet run")


if __name__ == "__main__":
    main()
