#!/usr/bin/env python3
"""scripts/gpu_check.sh loses no result: with made-up programs that hang, crash and measure nan."""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

KERNELS_TEST = """#!/usr/bin/env bash
case "$*" in
  *list_tests*) printf '%s\\n' Good. '  One' '  Two' Crashes. '  One' Hangs. '  One' \\
                  Cudnn/Attention. '  One/0  # GetParam() = 1' Last. '  One' ;;
  *=Good.One:Good.Two:*) ;;
  *=Crashes.*) [ -n "$CUDA_LAUNCH_BLOCKING" ] || kill -SEGV $$ ;;
  *=Hangs.*)  # once
    [ -z "$SKEIN_ATTENTION$SKEIN_TUNE$SKEIN_GRAPHS$SKEIN_EARLY_STARTS$CUDA_LAUNCH_BLOCKING" ] || exit 0
    trap '' TERM; setsid sleep 6001 & sleep 6002 ;;
  *=Cudnn/Attention.One/0:*) [ "$SKEIN_ATTENTION" = plain ] || { echo '[  FAILED  ] Cudnn/Attention.One/0'; exit 1; } ;;
  *=Last.One:*) ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""
KERNEL_BENCH = """#!/usr/bin/env bash
echo '{"copy_gb_per_s": 3000.5, "matmul_tflops": -nan}'
echo '{"kernel": "add", "ratio": nan, "gb_per_s": inf}'
echo '{"kernel": "swiglu", "ratio": 0.91, "gb_per_s": 2700}'
printf '{"kernel": "rms_no'
kill -KILL $$
"""

SANITIZER = """#!/usr/bin/env bash
case "$*" in
  '--tool memcheck --error-exitcode 9 --report-api-errors no '*'=Crashes.One:')
    echo '========= Invalid __global__ write of size 4 bytes'; exit 9 ;;
esac
"""


def write_programs(folder, **programs):
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def running(command):
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b" ".join(words).decode(errors="replace").strip() == command:
            found.append(folder.name)
    return found


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(cls.folder.name)
        write_programs(path, kernels_test=KERNELS_TEST, kernel_bench=KERNEL_BENCH,
                       sanitizer=SANITIZER)
        cls.results = path / "results.json"
        environment = os.environ | {
            "SKEIN_GPU_CHECK_DRY": "1", "SECTIONS": "kernels-test kernels",
            "KERNELS_TEST": str(path / "kernels_test"), "KERNEL_BENCH": str(path / "kernel_bench"),
            "COMPUTE_SANITIZER": str(path / "sanitizer"), "TESTS_SECONDS": "2",
            "PYTHON": sys.executable}
        cls.run_ = subprocess.run([ROOT / "scripts/gpu_check.sh", cls.results], env=environment,
                                  capture_output=True, text=True, timeout=120)
        cls.result = json.loads(cls.results.read_text(), parse_constant=lambda name: math.nan)
        cls.sections = {section["name"]: section for section in cls.result["sections"]}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_a_suite_that_crashes_or_hangs_takes_no_other_with_it(self):
        status = {name: section["status"] for name, section in self.sections.items()}
        self.assertEqual(self.run_.returncode, 1, self.run_.stderr)
        self.assertEqual(status["kernels-test Good"], "passed")
        self.assertEqual(status["kernels-test Crashes"], "failed")
        self.assertEqual(status["kernels-test Hangs"], "timeout")
        self.assertEqual(status["kernels-test Last"], "passed")
        self.assertFalse(self.result["passed"])

    def test_what_hangs_is_gone(self):
        self.assertEqual(running("sleep 6001") + running("sleep 6002"), [])

    def test_what_fails_runs_again_in_other_ways(self):
        self.assertEqual(self.sections["kernels-test Cudnn/Attention"]["status"], "failed")
        again = self.sections["kernels-test Cudnn/Attention, SKEIN_ATTENTION=plain"]
        self.assertEqual((again["kind"], again["status"]), ("again", "passed"))
        again = self.sections["kernels-test Cudnn/Attention, SKEIN_TUNE=off"]
        self.assertEqual(again["status"], "failed")
        again = self.sections["kernels-test Crashes, CUDA_LAUNCH_BLOCKING=1"]
        self.assertEqual((again["kind"], again["status"]), ("again", "passed"))

    def test_what_fails_runs_under_memcheck(self):
        again = self.sections["kernels-test Crashes, memcheck"]
        self.assertEqual((again["kind"], again["status"]), ("again", "failed"))
        self.assertIn("Invalid __global__ write", again["note"])
        self.assertEqual(self.sections["kernels-test Hangs, memcheck"]["status"], "passed")
        self.assertNotIn("kernels-test Good, memcheck", self.sections)

    def test_all_suites_run_before_one_runs_again(self):
        names = list(self.sections)
        self.assertLess(names.index("kernels-test Last"),
                        names.index("kernels-test Crashes, SKEIN_ATTENTION=plain"))

    def test_a_signal_that_ended_a_program_is_named(self):
        self.assertEqual(self.sections["kernels"]["status"], "failed")
        self.assertIn("ended by SIGKILL", self.sections["kernels"]["note"])
        self.assertIn("ended by SIGSEGV", self.sections["kernels-test Crashes"]["note"])

    def test_the_times_of_a_calls_sections_add_up_to_less_than_its_own(self):
        text = "".join((ROOT / "scripts" / name).read_text()
                       for name in ("gpu_check.sh", "gpu_sections.sh"))
        limits = {name: int(seconds) for name, seconds in
                  re.findall(r"wanted (\S+) \|\| train \S+ \S+ (\d+)", text)}
        for section, function in (("goldens", "check_goldens"), ("bits", "check_bits"),
                                  ("sanitizer", "check_sanitizer"), ("losses", "check_losses"),
                                  ("kernels", "measure_kernels"), ("start", "measure_start")):
            body = re.search(function + r"\(\) \{\n(.*?)\n\}\n", text, re.DOTALL).group(1)
            limits[section] = sum(map(int, re.findall(r"run \S+ \S+ (\d+) ", body)))
            if "for way in" in body:  # of attention: two
                limits[section] += int(re.search(r"for way in .*?(\d+) env", body, re.DOTALL)[1])
        together = int(re.search(r"until=\$\(\(SECONDS \+ (\d+)\)\)\n  for one in", text)[1])
        one_each = "".join(re.findall(r"racecheck_filter\+?='([^']*)'", text)).count(":")
        limits["sanitizer"] += together + 10 * one_each  # where the first takes all that they share
        seconds = dict(re.findall(r"\b(tests|again)_seconds=(\d+)", text))
        tests = int(seconds["tests"]) + 2 * 40 + int(seconds["again"])
        limits |= {"kernels-test": tests, "profile": 2 * 70, "train-fp8": 2 * int(
            re.search(r"measure_fp8\(\) \{.*? 7b (\d+) ", text, re.DOTALL)[1])}
        calls = re.findall(r"^  ([ABCD])\) SECTIONS='([^']*)' SECONDS_IN_ALL=\S*:-(\d+)\}", text,
                           re.MULTILINE)
        self.assertEqual([call for call, *_ in calls], ["A", "B", "C", "D"])
        for call, sections, seconds in calls:
            whole = sum(limits[section] for section in sections.split())
            self.assertLessEqual(whole, int(seconds), call)
            self.assertLess(int(seconds), 600, call)

    def test_a_call_has_a_name(self):
        environment = {key: value for key, value in os.environ.items() if key != "SECTIONS"}
        for arguments in ([], ["E"]):
            run = subprocess.run([ROOT / "scripts/gpu_check.sh", *arguments], env=environment,
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertIn("expected A, B, C or D, or SECTIONS", run.stderr)

    def test_a_nan_costs_no_other_figure(self):
        figures = {figure["name"]: figure for figure in self.result["figures"]}
        self.assertEqual(figures["copy within the device"]["value"], 3000.5)
        self.assertIsNone(figures["large bf16 product"]["value"])
        self.assertIsNone(figures["add"]["value"])
        self.assertFalse(figures["add"]["met"])
        self.assertEqual((figures["swiglu"]["value"], figures["swiglu"]["met"]), (0.91, True))
        self.assertEqual(len(self.result["unread"]), 3, self.result["unread"])
        self.assertIn("no number", self.run_.stdout)


if __name__ == "__main__":
    unittest.main()
