#!/usr/bin/env python3
"""scripts/run_tests.py with a made-up ctest: processor time of each kind of test comes before ctest's summary, which
is the last thing printed, and its exit code is kept."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Its second test uses processor time.
CTEST = """#!/usr/bin/env bash
case "$*" in
  *--show-only*)
    printf '{"tests": ['
    printf '{"name": "base/A.B", "properties": [{"name": "LABELS", "value": ["unit"]}]},'
    printf '{"name": "tests/C.D/1", "properties": [{"name": "LABELS", "value": ["check.part", "whole"]}]}]}'
    exit ;;
esac
echo "options: $*"
echo ' 1/2 Test  #1: base/A.B .......   Passed    0.01 sec'
bash -c 'for ((i = 0; i < 400000; ++i)); do :; done'
echo ' 2/2 Test  #9: tests/C.D/1 ....***Failed    1.00 sec'
echo '100% of it was printed'
echo
echo '50% tests passed, 1 tests failed out of 2'
echo
echo 'Total Test time (real) =   1.01 sec'
exit 8
"""


class RunTests(unittest.TestCase):
    def test_what_it_prints_and_where(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "build").mkdir()
            ctest = folder / "ctest"
            ctest.write_text(CTEST)
            ctest.chmod(0o755)
            done = subprocess.run(
                [ROOT / "scripts/run_tests.py", "--after-build", "2m3.000s 0m57.000s", "--left-out", "Left out: x.",
                 "-LE", "^check"], cwd=folder, capture_output=True, text=True,
                env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 8, done.stderr)
            lines = done.stdout.splitlines()
            self.assertIn("-LE ^check", lines[0])
            self.assertEqual(lines[-1], "Total Test time (real) =   1.01 sec")
            summary = lines.index("50% tests passed, 1 tests failed out of 2")
            (spent,) = [i for i, line in enumerate(lines) if line.startswith("Processor minutes: build 3.0, ")]
            self.assertIn("whole 0.", lines[spent])
            self.assertIn("unit 0.0", lines[spent])
            self.assertLess(lines.index("100% of it was printed"), spent)
            self.assertLess(spent, lines.index("Left out: x."))
            self.assertLess(lines.index("Left out: x."), summary)
            seconds, test = (folder / "build/Testing/processor_seconds.txt").read_text().splitlines()[0].split()
            self.assertEqual(test, "tests/C.D/1")
            self.assertGreater(float(seconds), 0)


unittest.main()
