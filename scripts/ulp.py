#!/usr/bin/env python3
"""Errors of all ops in units of the last place, by back end: the table of docs/ulp.md.

  scripts/ulp.py                  runs the tests of all ops on the CPU, on the emulated GPU and through PJRT, and writes
                                  the table (ten minutes and more); the tests must be built (scripts/test.sh builds them)
  scripts/ulp.py --files FOLDER   writes the table from what an earlier call kept there
  scripts/ulp.py --keep FOLDER    also keeps what was measured

Each test of an op compares its outputs, and its gradients, with double precision (tests/ops/op_harness.h); with
SKEIN_ULP_FILE set it also writes the errors to that file (tests/ops/ulp.h).
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SKEIN_BUILD", ROOT / "build"))
PAGE = ROOT / "docs/ulp.md"
BLOCK = re.compile(r"(<!-- ulp: begin -->\n)(.*?)(<!-- ulp: end -->)", re.S)
# The tests of ranks run collectives, which move values.
SIDES = {
    "cpu": ("CPU", ["skein_ops_test"]),
    "cuda": ("CUDA, emulated", ["skein_cuda_emulated_test", "--gtest_filter=-Ranks*:*ThreadRanks*"]),
    "pjrt": ("XLA on a CPU", ["skein_pjrt_test", "--gtest_filter=-Ranks/*"]),
}
def measure(folder):
    for side, (_, (program, *options)) in SIDES.items():
        file = folder / f"{side}.jsonl"
        file.unlink(missing_ok=True)
        print(f"ulp: {program}", file=sys.stderr, flush=True)
        done = subprocess.run([BUILD / program, "--gtest_brief=1", *options], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "SKEIN_ULP_FILE": str(file)})
        if done.returncode != 0:
            sys.exit(f"ulp: {program}: exit code {done.returncode}\n{done.stdout[-3000:]}")


def read(folder):
    """The largest error, and the mean over elements, by op and numbers, of each side."""
    rows = {}
    for side in SIDES:
        for line in (folder / f"{side}.jsonl").read_text().splitlines():
            one = json.loads(line)
            numbers = one["to"] if one["from"] == one["to"] else f"{one['from']} to {one['to']}"
            total = rows.setdefault((one["op"], one["what"], numbers), {}).setdefault(side, [0, 0, 0])
            total[0] = max(total[0], one["largest"])
            total[1] += one["mean"] * one["count"]
            total[2] += one["count"]
    return rows


def number(value):
    return "0" if value == 0 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def table(rows):
    names = [name for name, _ in SIDES.values()]
    text = "| op | | numbers | " + " | ".join(names) + " |\n|---|---|---|" + "--:|" * len(names) + "\n"
    for (op, what, numbers), of_sides in sorted(rows.items()):
        cells = []
        for side in SIDES:
            largest, total, count = of_sides.get(side, (0, 0, 0))
            cells.append(f"{number(largest)} ({number(total / count)})" if count else "")
        text += f"| `{op}` | {what} | {numbers} | " + " | ".join(cells) + " |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.files or args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not args.files:
            measure(folder.resolve())
        rows = read(folder)
    page, found = BLOCK.subn(lambda block: block[1] + "\n" + table(rows) + "\n" + block[3], PAGE.read_text())
    if found != 1:
        sys.exit(f"ulp: {PAGE.relative_to(ROOT)} has no block <!-- ulp: begin -->")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
