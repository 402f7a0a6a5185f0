#!/usr/bin/env python3
"""Makes each call on a file of a run fail once: ENOSPC, EIO, EINTR, and short writes; and ESTALE, then for as long
as the descriptor lives.

  file_errors.py SKEIN FOLDER [--every 1] [--layouts NAME;…] [--only elsewhere] [--errors NAME;…]

As crash_points.py, but the call fails instead of the process. In saves: one run for each kind of error, in which
every third save is struck; training must go on, what was not saved be told as a `failure` with the path and the
error, the next save succeed, and EINTR and short writes cost nothing. On the run's other files (metrics, events,
logs, config.toml, tokenizer, locks): one run for each call; it goes on, or ends with an error that names file and
error, and then the same command must go on; metrics and events are opened again after ESTALE, and have each line
once. Every step has the bits of a run without faults.
--every 5 takes each fifth call.

Prints a table; ends with 1 where a point fails.
"""
import argparse
import collections
import errno
import os
import shutil
import subprocess
import sys

from file_faults import (Address, ERROR, Faults, KINDS, LAYOUTS, SHORT_WRITE, STALE, describe,
                         numbers, quiet_run, same_weights, table, train)
from supervised import events, metrics, work_folder

ERRORS = {"ENOSPC": (ERROR, errno.ENOSPC), "EIO": (ERROR, errno.EIO), "EINTR": (ERROR, errno.EINTR),
          "ESTALE": (STALE, errno.ESTALE), "short write": (SHORT_WRITE, 0)}
COSTS_NOTHING = ("EINTR", "short write")


def ranks_of(settings):
    return [-1, *range(settings["launch.workers"])] if "launch.workers" in settings else [-1]


def count_calls(skein, folder, data, settings, elsewhere):
    run = os.path.join(folder, "counted")
    faults = Faults(os.path.join(folder, "plan"), run)
    code, said = train(skein, folder, data, run, 6, settings, faults)
    if code != 0:
        raise RuntimeError(f"{run} ended with {code}: {said[-2000:]}")
    shutil.rmtree(run)
    return {rank: faults.most(rank, elsewhere) for rank in ranks_of(settings)}


def all_logs(run, said):
    logs = os.path.join(run, "logs")
    for name in sorted(os.listdir(logs)) if os.path.isdir(logs) else []:
        with open(os.path.join(logs, name), errors="replace") as log:
            said += log.read()
    return said


def wrong_steps(run, quiet):
    """Steps whose numbers are not those of the quiet run, and those that are missing."""
    expected = {record["step"]: numbers(record) for record in metrics(quiet)}
    found = {record["step"]: numbers(record) for record in metrics(run)}
    return ([step for step in found if found[step] != expected[step]],
            [step for step in expected if step not in found])


def doubled_lines(run):
    """Lines of metrics and events, all of which have their time, that are there twice."""
    found = []
    for name in ("metrics.jsonl", "events.jsonl"):
        with open(os.path.join(run, name), "rb") as file:
            found += [line for line, count in collections.Counter(file).items() if count > 1 and line.strip()]
    return found


def is_line(point):
    return KINDS[point.kind] == "write" and point.path.endswith(b".jsonl")


def in_saves(skein, folder, data, settings, error, every):
    """Strikes every third save of one run."""
    action, number = ERRORS[error]
    calls = count_calls(skein, folder, data, settings, False)
    chosen = [Address(rank, 0, index, 0, action, number) for rank in calls
              for index in range(0, calls[rank], every)]
    steps = 3 * (len(chosen) + 2)
    quiet = quiet_run(skein, folder, data, "quiet", steps, settings)
    run = os.path.join(folder, "struck")
    faults = Faults(os.path.join(folder, "plan"), run, chosen)
    code, said = train(skein, folder, data, run, steps, settings, faults)
    points = [point for point in faults.points() if point.fired > 0]
    failures = []
    if code != 0:
        failures.append(f"ended with {code}: {said[-1500:]}")
    committed = {event["step"] for event in events(run, "checkpoint_commit")}
    told = {event["step"]: event["reason"] for event in events(run, "failure")}
    if len(events(run, "start")) != 1:
        failures.append("workers were started again: expected training to go on")
    counts = collections.Counter(struck=len(points))
    for point in points:
        what = f"{describe(point)} of the save of step {point.fired}"
        counts["saved" if point.fired in committed else "not saved, told"] += 1
        reason = " ".join(told.get(step, "") for step in (point.fired, point.fired + 1, point.fired + 2))
        if point.fired not in committed and os.strerror(number) not in reason:
            failures.append(f"{what}: was not saved, and no failure says \"{os.strerror(number)}\", but: {reason}")
        if point.fired not in committed and error in COSTS_NOTHING:
            failures.append(f"{what}: was not saved: {reason}")
        if point.fired + 1 not in committed and point.fired + 1 <= steps:
            failures.append(f"{what}: the next save failed as well: {reason}")
    wrong, missing = wrong_steps(run, quiet)
    if wrong or missing:
        failures.append(f"steps {wrong[:3]} have other bits, {missing[:3]} are missing")
    if not same_weights(skein, run, quiet, steps):
        failures.append("the exported weights differ from those of the quiet run")
    verified = subprocess.run([skein, "checkpoint", "verify", run], capture_output=True, text=True)
    if verified.returncode != 0:
        failures.append(f"skein checkpoint verify: {verified.stderr[-500:]}")
    shutil.rmtree(run)
    shutil.rmtree(quiet)
    return counts, failures


def elsewhere(skein, folder, data, settings, error, every):
    """One run for each call on files that are no checkpoint's."""
    action, number = ERRORS[error]
    steps = 4
    settings = {**settings, "checkpoint.every_steps": 2}
    quiet = quiet_run(skein, folder, data, "quiet", steps, settings)
    calls = count_calls(skein, folder, data, settings, True)
    counts, failures = collections.Counter(), []
    for rank in calls:
        for index in range(0, calls[rank], every):
            run = os.path.join(folder, "struck")
            faults = Faults(os.path.join(folder, "plan"), run, [Address(rank, 1, index, 0, action, number)])
            code, said = train(skein, folder, data, run, steps, settings, faults)
            point = faults.points()[0]
            if point.fired <= 0:
                shutil.rmtree(run, ignore_errors=True)
                continue
            counts["struck"] += 1
            said = all_logs(run, said)
            goes_on, is_told = code == 0, error in COSTS_NOTHING or os.strerror(number) in said
            counts["went on" if goes_on else "ended, told"] += 1
            if not is_told:
                counts["silent"] += 1
            if error in COSTS_NOTHING and code != 0:
                failures.append(f"{describe(point)}: ended with {code}: {said[-600:]}")
            if code != 0:
                if not is_told:
                    failures.append(f"{describe(point)}: ended with {code} without \"{os.strerror(number)}\": {said[-600:]}")
                code, said = train(skein, folder, data, run, steps, settings)
                if code != 0:
                    failures.append(f"{describe(point)}: the same command ended with {code}: {said[-600:]}")
            elif not is_told:
                print(f"file_errors: note: {describe(point)}: nothing was said", flush=True)
            wrong, missing = wrong_steps(run, quiet)
            if wrong or len(missing) > 1 or (missing and "metrics" not in point.path.decode()):
                failures.append(f"{describe(point)}: steps {wrong} have other bits, {missing} are missing")
            if doubled := doubled_lines(run):
                failures.append(f"{describe(point)}: is there twice: {doubled[0]}")
            if action == STALE and is_line(point) and (missing or not goes_on):
                failures.append(f"{describe(point)}: was not opened again: {said[-600:]}")
            shutil.rmtree(run)
    shutil.rmtree(quiet)
    return counts, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--layouts", default="one worker;data 2, ZeRO 1")
    parser.add_argument("--only", default="saves;elsewhere")
    parser.add_argument("--errors", default=";".join(ERRORS))
    args = parser.parse_args()
    skein, folder, data = work_folder(args, "errors")
    head = ("calls of", "error", "failed calls", "saved", "not saved, told", "went on", "ended, told", "silent")
    rows, failures = [], []
    for name in args.layouts.split(";"):
        for where, strike in (("saves", in_saves), ("elsewhere", elsewhere)):
            if where not in args.only:
                continue
            for error in args.errors.split(";"):
                counts, wrong = strike(skein, folder, data, LAYOUTS[name], error, args.every)
                rows.append((f"{name}, {where}", error, *(counts[key] for key in ("struck", *head[3:]))))
                print(table(head, rows[-1:]), flush=True)
                for line in wrong:
                    print(f"file_errors: {name}, {where}: {line}", flush=True)
                failures += wrong
    print(table(head, rows))
    shutil.rmtree(folder)
    struck = sum(row[2] for row in rows)
    print(f"{struck} calls failed: {len(failures)} points with a wrong end")
    return 1 if failures or struck == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
