#!/usr/bin/env python3
"""scripts/same_quality.py in a short form: the CPU and XLA's CPU agree, and a changed learning rate is found.

  tests/scripts/same_quality_test.py

Skipped (exit code 77) where there is no PJRT plugin.
"""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHORT = ["--model", "small", "--steps", "40", "--start", "10", "--every", "10", "--text", str(ROOT / "docs")]


def exit_code(*more):
    done = subprocess.run([ROOT / "scripts/same_quality.py", *SHORT, *more], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    print(done.stdout)
    return done.returncode


def main():
    if not list(ROOT.glob(".deps/lammps-jax-pjrt-cpu-plugin-*/*/*.so")):
        print("skipped: no PJRT plugin: scripts/test_tools.sh unpacks one")
        sys.exit(77)
    if exit_code() != 0:
        sys.exit("same_quality_test: the back ends differ")
    if exit_code("--precision", "fp32", "--fault", "optimizer.learning_rate=0.0022") != 1:
        sys.exit("same_quality_test: a learning rate of ten percent more was not found")


if __name__ == "__main__":
    main()
