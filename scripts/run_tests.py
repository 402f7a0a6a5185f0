#!/usr/bin/env python3
"""Runs ctest in build/, as many tests at a time as there are cores, and prints the processor time of each kind
of test before ctest's summary, which stays the last thing printed.

  run_tests.py [--after-build TIMES] [--left-out TEXT] CTEST_OPTION…

  --after-build  the last line of bash's `times` after the build: processor time of that
  --left-out     a line to print there as well

A test's processor time is what ctest's children used more when it had ended; kinds are labels
(cmake/test_parts.cmake). build/Testing/processor_seconds.txt has it test by test, the longest first. Ends with
ctest's exit code.
"""
import argparse
import collections
import json
import os
import re
import subprocess
import sys

RESULT = re.compile(r" *\d+/\d+ Test +#\d+: (\S+) ")
SUMMARY = re.compile(r"\d+% tests passed|No tests were found")


def labels(command):
    """Test to its kind, the first of its labels that names no part of scripts/check.sh."""
    shown = subprocess.run([*command, "--show-only=json-v1"], capture_output=True, text=True)
    kinds = {}
    for test in json.loads(shown.stdout)["tests"] if shown.returncode == 0 else []:
        found = [prop["value"] for prop in test["properties"] if prop["name"] == "LABELS"]
        kinds[test["name"]] = next((label for label in sum(found, []) if not label.startswith("check.")), "other")
    return kinds


def seconds_of_children(pid):
    """Of the children that it waited for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def seconds_of_times(line):
    """0m1.234s 2m3.456s, user and system time."""
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", line))


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--after-build", default="")
    parser.add_argument("--left-out", default="")
    args, options = parser.parse_known_args()
    command = ["ctest", "--test-dir", "build", "-j", str(len(os.sched_getaffinity(0))), "--output-on-failure",
               "--no-tests=error", *options]
    kinds = labels(command)
    spent, of_test, so_far, summary = collections.Counter(), collections.Counter(), 0.0, []
    ctest = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in ctest.stdout:
        if summary or SUMMARY.match(line):
            summary.append(line)
            continue
        sys.stdout.write(line)
        sys.stdout.flush()
        result = RESULT.match(line)
        if result:
            now = seconds_of_children(ctest.pid)
            spent[kinds.get(result[1], "other")] += now - so_far
            of_test[result[1]] += now - so_far
            so_far = now
    code = ctest.wait()
    os.makedirs("build/Testing", exist_ok=True)
    with open("build/Testing/processor_seconds.txt", "w") as out:
        out.writelines(f"{seconds:8.1f} {test}\n" for test, seconds in of_test.most_common())
    build = seconds_of_times(args.after_build)
    if build:
        spent["build"] = build
    rows = [f"{kind} {seconds / 60:.1f}" for kind, seconds in spent.most_common()]
    print(f"\nProcessor minutes: {', '.join(rows)}; in all {sum(spent.values()) / 60:.1f}.")
    if args.left_out:
        print(args.left_out)
    print()
    sys.stdout.writelines(summary)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
