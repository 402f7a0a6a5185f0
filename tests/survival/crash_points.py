#!/usr/bin/env python3
"""Kills training before and after every write, fsync and rename of a save, over layouts.

  crash_points.py SKEIN FOLDER [--points 1000] [--layouts NAME,…]

A tiny run saves after each step. A library that is preloaded into skein (tests/survival/file_faults.cc) sends
SIGKILL to a rank before or after a chosen call that creates, writes, syncs, renames or removes a file of a
checkpoint; with several workers the supervisor starts them again, a single one this script. Each point is a
call of a rank, so all of them lie in saves of the same run, three steps apart. It is recovered where the run went on from
the checkpoint that was being saved (new) or the one before it (old); the same bits where each step up to the
next kill has loss and norms of a run without faults. In the end the exported weights must be the same file.

FOLDER should be in memory: a kill loses nothing that was written. Prints a table; ends with 1 where a point fails.
"""
import argparse
import os
import shutil
import sys
import time

from file_faults import (Address, Faults, LAYOUTS, describe, numbers, quiet_run, same_weights, table,
                         train)
from supervised import events, metrics, work_folder

GAP = 3  # steps from a kill to the next


def addresses(skein, folder, data, name, settings, count):
    """Evenly `count` of the points before and after each call of each rank, or all of them."""
    run = os.path.join(folder, name + "-counted")
    faults = Faults(os.path.join(folder, "plan"), run)
    code, said = train(skein, folder, data, run, 6, settings, faults)
    if code != 0:
        raise RuntimeError(f"{run} ended with {code}: {said[-2000:]}")
    shutil.rmtree(run)
    ranks = range(settings["launch.workers"]) if "launch.workers" in settings else [-1]
    every = [Address(rank, 0, index, after) for rank in ranks for index in range(faults.most(rank))
             for after in (0, 1)]
    if count >= len(every):
        return every
    return [every[i * len(every) // count] for i in range(count)]


def strike(skein, folder, data, name, settings, chosen):
    """Trains through all points, starting again what has no supervisor."""
    run = os.path.join(folder, name)
    steps = 3 + GAP * (len(chosen) + 1)
    quiet = quiet_run(skein, folder, data, name + "-quiet", steps, settings)
    faults = Faults(os.path.join(folder, "plan"), run, chosen, gap=GAP)
    for _ in range(len(chosen) + 1):
        code, said = train(skein, folder, data, run, steps, settings, faults)
        if code != -9:
            break
    if code != 0:
        raise RuntimeError(f"{run} ended with {code}: {said[-2000:]}")
    return run, quiet, steps, faults.points()


def judge(name, run, quiet, points):
    """Of each point: from which checkpoint the run went on, and whether it had the same bits."""
    expected = {record["step"]: numbers(record) for record in metrics(quiet)}
    done = {}
    for record in metrics(run):
        done.setdefault(record["start"], []).append(record)
    starts = {event["number"]: event for event in events(run, "start")}
    struck = [point for point in points if point.fired > 0]
    counts = {"struck": len(struck), "old": 0, "new": 0, "same": 0}
    failures = [f"{name}: {event['path']} was passed over: {event['reason']}"
                for event in events(run, "checkpoint_skip")]
    if len(starts) != len(struck) + 1:
        failures.append(f"{name}: {len(starts)} starts after {len(struck)} kills: expected one more")
    for number, point in enumerate(struck, start=2):
        start = starts.get(number)
        if start is None or start["step"] not in (point.fired - 1, point.fired):
            failures.append(f"{name}: {describe(point)} of the save of step {point.fired}: went on from "
                            f"{start['step'] if start else 'nothing'}, expected {point.fired - 1} or {point.fired}")
            continue
        counts["new" if start["step"] == point.fired else "old"] += 1
        steps = done.get(number, [])
        wrong = [record["step"] for record in steps if numbers(record) != expected[record["step"]]]
        if wrong or not steps or steps[0]["step"] != start["step"] + 1:
            failures.append(f"{name}: {describe(point)} of the save of step {point.fired}: the bits of step "
                            f"{wrong[0] if wrong else start['step'] + 1} are not those of the quiet run")
            continue
        counts["same"] += 1
    return counts, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--layouts", default=";".join(LAYOUTS), help="names, with ';' between them")
    args = parser.parse_args()
    names = args.layouts.split(";")
    unknown = [name for name in names if name not in LAYOUTS]
    if unknown:
        parser.error(f"--layouts: there is no \"{unknown[0]}\": expected of {'; '.join(LAYOUTS)}")
    skein, folder, data = work_folder(args, "crash")
    rows, failures, left = [], [], args.points
    for i, name in enumerate(names):
        begun = time.time()
        short = f"layout{i}"
        chosen = addresses(skein, folder, data, short, LAYOUTS[name], left // (len(names) - i))
        run, quiet, steps, points = strike(skein, folder, data, short, LAYOUTS[name], chosen)
        counts, wrong = judge(name, run, quiet, points)
        if not same_weights(skein, run, quiet, steps):
            wrong.append(f"{name}: the exported weights differ from those of the quiet run")
        left -= counts["struck"]
        rows.append((name, len(chosen), counts["struck"], counts["old"], counts["new"], counts["same"],
                     "differ" if any("exported" in line for line in wrong) else "same",
                     f"{time.time() - begun:.0f} s"))
        print(table(("layout", "points", "killed", "old", "new", "same bits", "weights", "took"), rows[-1:]),
              flush=True)
        failures += wrong
        if not wrong:
            shutil.rmtree(run)
            shutil.rmtree(quiet)
    total = [sum(row[i] for row in rows) for i in range(1, 6)]
    print(table(("layout", "points", "killed", "old", "new", "same bits", "weights", "took"),
                rows + [("all", *total, "", "")]))
    for line in failures:
        print(f"crash_points: {line}")
    if failures:
        print(f"crash_points: what was left lies in {folder}")
        return 1
    shutil.rmtree(folder)
    print(f"{total[1]} kills: all recovered, {total[4]} with the same bits")
    return 0 if total[4] == total[1] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
