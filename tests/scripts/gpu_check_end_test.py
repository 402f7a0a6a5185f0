#!/usr/bin/env python3
"""scripts/gpu_check.sh where something ends it: nothing that it started is left. With made-up programs."""

import contextlib
import functools
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from gpu_check_test import ROOT, running, write_programs

sys.path.insert(0, str(ROOT / "scripts"))
import within  # noqa: E402

SKEIN = """#!/usr/bin/env bash
[ "$1" = train ] || exit 0
echo 'beginning from random weights'
[ -n "$HANGS" ] || echo 'step 1/5: loss 2.5'
exec sleep 6006
"""


def wait_until(condition, what, seconds=30):
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"after {seconds} s: {what}")
        time.sleep(0.05)


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
            printed = process.communicate(timeout=20)[0]
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
            wait_until(lambda: not running("sleep 6006"), "the start is left", 5)


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
