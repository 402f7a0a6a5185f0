#!/usr/bin/env python3
"""scripts/gpu_check.sh where something ends it, or a run of it hangs or is torn: what had come out by
then is in its results, and nothing that it started is left. With made-up programs."""

import contextlib
import functools
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock
import uuid

from gpu_check_test import ROOT, running, write_programs

sys.path.insert(0, str(ROOT / "scripts"))
import within  # noqa: E402

# Its first run measures, its second one hangs.
TRAIN_BENCH = """#!/usr/bin/env bash
if mkdir "$FOLDER/first" 2>/dev/null; then
  echo '{"tokens_per_s": 1000.5, "model_tflops": 1, "share_of_matmul": 0.5, "peak_bytes": 1000}'
  exit
fi
[ -z "$STUBBORN" ] || trap '' TERM
setsid sleep 6003 &
echo $! > "$FOLDER/child"
echo 'the second run hangs' >&2
sleep 6004
"""
# torch is there, and what it prints is torn.
PYTHON = f"""#!/usr/bin/env bash
case "$1 $2" in
  bench/compare_torch.py*)
    ! grep -qs sleep "/proc/$(cat "$FOLDER/child" 2>/dev/null)/cmdline" || echo 'beside a run that hung' >&2
    printf '{{"tokens_per_s": 99' ;;
  '-c import torch'*) echo '2.11 91900' ;;
  *) exec {sys.executable} "$@" ;;
esac
"""
KERNEL_BENCH = """#!/usr/bin/env bash
echo '{"kernel": "swiglu", "ratio": 0.91}'
[[ "$*" != *"$HANGS_AT"* ]] || { echo 'the kernels hang'; sleep 6005; }
"""
KERNELS_TEST = """#!/usr/bin/env bash
case "$*" in
  *list_tests*) printf '%s\\n' Fails. '  One' ;;
  *Fails.One:*) exit 1 ;;
esac
"""
SKEIN = """#!/usr/bin/env bash
[ "$1" = train ] || exit 0
echo 'beginning from random weights'
[ -n "$HANGS" ] || echo 'step 1/5: loss 2.5'
exec sleep 6006
"""


def wait_until(condition, what, seconds=300):
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"after {seconds} s: {what}")
        time.sleep(0.05)


class Check:
    """A gpu_check.sh under way, in a session of its own, with a folder."""

    def __init__(self, sections, script=ROOT / "scripts/gpu_check.sh", **environment):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        write_programs(self.folder, train_bench=TRAIN_BENCH, kernel_bench=KERNEL_BENCH,
                       kernels_test=KERNELS_TEST, python=PYTHON)
        (self.folder / "tmp").mkdir()
        self.out = self.folder / "out"
        self.mark = f"GPU_CHECK_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.printed = open(self.folder / "printed", "w")
        self.process = subprocess.Popen(
            [script], stdout=self.printed, stderr=self.printed, start_new_session=True,
            env=os.environ | {
                "SKEIN_GPU_CHECK_DRY": "1", "SECTIONS": sections, name: value,
                "FOLDER": str(self.folder), "TMPDIR": str(self.folder / "tmp"),
                "OUT": str(self.out), "PYTHON": str(self.folder / "python"), "MODES": "eager",
                "TRAIN_BENCH": str(self.folder / "train_bench"), "HANGS_AT": "nowhere",
                "KERNEL_BENCH": str(self.folder / "kernel_bench"),
                "KERNELS_TEST": str(self.folder / "kernels_test")} | environment)

    def log(self):
        return "".join(path.read_text() for path in self.out.glob("*.log"))

    def result(self):
        (path,) = self.out.glob("*.json")
        return json.loads(path.read_text())

    def reach(self, line):
        wait_until(lambda: line in self.log() or self.process.poll() is not None, f"no {line}")

    def left(self):
        """What runs with our mark in its environment."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (path / "environ").read_bytes():
                    found.append((path / "cmdline").read_bytes().replace(b"\0", b" "))
        return found

    def close(self):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (path / "environ").read_bytes():
                    os.kill(int(path.name), signal.SIGKILL)
        self.process.wait()
        self.printed.close()
        self.temporary.cleanup()


class Ends(unittest.TestCase):
    def check(self, *arguments, **environment):
        check = Check(*arguments, **environment)
        self.addCleanup(check.close)
        return check

    def end(self, check, number, whole_group=False):
        (os.killpg if whole_group else os.kill)(check.process.pid, number)
        code = check.process.wait(60)  # what it started would sleep for 6,000 s
        wait_until(lambda: check.left() == [], "what it started is left", 60)
        return code

    def expect_first_run(self, result):
        self.assertEqual([run["run"]["tokens_per_s"] for run in result["runs"]], [1000.5])
        self.assertEqual(result["unread"], [])
        self.assertEqual((result["torch"], result["cudnn"]), ("2.11", "91900"))

    def expect_kernel(self, result):
        self.assertIn(("swiglu", 0.91), [(figure["name"], figure["value"])
                                         for figure in result["figures"]])

    def test_a_signal_within_a_section(self):
        checks = {name: self.check("train-7b", STUBBORN="1") for name in
                  ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "all SIGTERM", "all SIGKILL")}
        for name, check in checks.items():
            with self.subTest(name):
                check.reach("the second run hangs")
                result = check.result()  # before the section ends
                self.expect_first_run(result)
                self.assertEqual((result["sections"][-1]["name"], result["sections"][-1]["status"]),
                                 ("train-7b", "running"))
                self.assertFalse(result["complete"] or result["passed"])
                number = signal.Signals[name.split()[-1]]
                code = self.end(check, number, whole_group=name.startswith("all"))
                result = check.result()
                self.expect_first_run(result)
                self.assertFalse(result["complete"] or result["passed"])
                self.assertIn("the second run hangs", check.log())
                self.assertEqual(list(check.out.glob("*.new")), [])
                section = result["sections"][-1]
                if number == signal.SIGKILL:
                    self.assertEqual((code, section["status"]), (-number, "running"))
                else:
                    self.assertEqual(code, 128 + number)
                    self.assertEqual((section["name"], section["status"], section["note"]),
                                     ("train-7b", "interrupted", f"by {number.name}"))
                    self.assertEqual(list((check.folder / "tmp").iterdir()), [])

    def test_figures_of_kernels_come_with_their_section(self):
        between = self.check("kernels", HANGS_AT="--filter")  # of the measurement after it
        within_ = self.check("kernels", HANGS_AT="--device")
        between.reach("the kernels hang")
        self.expect_kernel(between.result())
        within_.reach("the kernels hang")
        self.end(within_, signal.SIGTERM)
        self.expect_kernel(within_.result())

    def test_a_run_that_hangs_and_one_that_is_torn(self):
        run = self.check("train-7b", RUN_SECONDS="3")
        section = self.check("train-7b", RUN_SECONDS="100", TRAIN_SECONDS="12")
        for check, status in ((run, "failed"), (section, "timeout")):
            self.assertEqual(check.process.wait(400), 1)
            self.assertEqual(check.left(), [])
            result = check.result()
            self.expect_first_run(result)
            self.assertTrue(result["complete"])
            self.assertEqual([entry["status"] for entry in result["sections"]], [status])
            self.assertNotIn("beside a run that hung", check.log())
            self.assertIn('its last line is no result: {"tokens_per_s": 99', check.log())
        self.assertIn("not done after 3 s", run.log())
        self.assertIn("1000  ", run.log())  # tokens/s in the table of the runs that came out

    def test_repeats_have_a_time_that_they_share(self):
        none = self.check("kernels-test", AGAIN_SECONDS="0")
        some = self.check("kernels-test")
        for check, status in ((none, "no time"), (some, "failed")):
            self.assertEqual(check.process.wait(400), 1)
            again = {entry["name"]: entry for entry in check.result()["sections"]
                     if entry["kind"] == "again"}
            self.assertEqual(again["kernels-test Fails, CUDA_LAUNCH_BLOCKING=1"]["status"], status)
            memcheck = again["kernels-test Fails, memcheck"]
            self.assertEqual((memcheck["status"], memcheck["note"]),
                             ("skipped", "the emulation has nothing for it"))

    def test_a_bundle_holds_what_it_runs_and_ends_with_it(self):
        text = (ROOT / "scripts/gpu_bundle.sh").read_text()
        copies = r'^cp ((?:\S+ )+)"\$stage/(?:bench|scripts)/"$'
        files = " ".join(re.findall(copies, text, re.MULTILINE))
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(f"{folder}/skein-gpu.tar.xz", "w:xz") as archive:
                for name in files.split():
                    archive.add(ROOT / name, name)
            script = shutil.copy(ROOT / "scripts/gpu_check.sh", folder)
            check = self.check("train-7b", script)
            check.reach("the second run hangs")
            self.assertEqual(self.end(check, signal.SIGTERM), 128 + signal.SIGTERM)
            self.expect_first_run(check.result())
            self.assertEqual(check.result()["sections"][-1]["status"], "interrupted")
            self.assertEqual(list((check.folder / "tmp").iterdir()), [])


class Start(unittest.TestCase):
    def start(self, folder, **environment):
        write_programs(folder, skein=SKEIN,
                       after_run='#!/bin/sh\nwc -l < "$STARTS" >> "$STARTS.told"\n')
        return subprocess.Popen(
            [sys.executable, ROOT / "scripts/gpu_start.py", folder / "skein", folder / "work",
             "x.toml"],
            env=os.environ | {"STARTS": str(folder / "starts"), "HANGS": "",
                              "AFTER_RUN": str(folder / "after_run")} | environment,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def test_each_start_is_told_as_it_ends_and_ends_then(self):
        with tempfile.TemporaryDirectory() as name, self.start(pathlib.Path(name)) as process:
            printed = process.communicate(timeout=200)[0]
            self.assertEqual(process.returncode, 0)
            self.assertEqual([json.loads(line)["start"] for line in printed.splitlines()], [1, 2])
            self.assertEqual(pathlib.Path(name, "starts").read_text(), printed)
            self.assertEqual(pathlib.Path(name, "starts.told").read_text().split(), ["1", "2"])
            self.assertEqual(running("sleep 6006"), [])

    def test_a_start_ends_with_what_started_it(self):
        with (tempfile.TemporaryDirectory() as name,
              self.start(pathlib.Path(name), HANGS="1") as process):
            wait_until(lambda: running("sleep 6006"), "no start")
            process.kill()
            wait_until(lambda: not running("sleep 6006"), "the start is left", 60)


class Within(unittest.TestCase):
    def test_a_parent_that_ended_before(self):
        run = subprocess.run([ROOT / "scripts/within.py", "--parent", "1", "5", "echo", "ran"],
                             capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (128 + signal.SIGTERM, ""))

    def test_what_cannot_be_killed_is_told_and_waited_for_no_longer(self):
        error = io.StringIO()
        with (unittest.mock.patch.multiple(within, descendants=lambda: {7}, end=lambda number: None,
                                           KILL_S=0.1), contextlib.redirect_stderr(error)):
            within.end_all(0.1)
        self.assertIn("killed, and still there: processes [7]", error.getvalue())

    def test_the_command_heeds_what_a_shell_in_the_background_ignores(self):
        prepare = functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
        command = ["sh", "-c", "kill -INT $$; echo ran"]
        run = subprocess.run([ROOT / "scripts/within.py", "5", *command], preexec_fn=prepare,
                             capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (128 + signal.SIGINT, ""))


if __name__ == "__main__":
    unittest.main()
