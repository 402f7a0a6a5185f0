#!/usr/bin/env python3
"""Every test of ctest is run by scripts/test.sh or by one part of scripts/check.sh, and by no two. CI runs each part.

  parts_test.py BUILD
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = sys.argv[1]


def tests(*options):
    shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1", *options], check=True,
                           capture_output=True, text=True).stdout
    return {test["name"] for test in json.loads(shown)["tests"]}


def expect(holds, what):
    if not holds:
        sys.exit(f"parts_test: {what}")


def main():
    everything = tests()
    names = subprocess.run([ROOT / "scripts/check.sh", "--names"], check=True, capture_output=True,
                           text=True).stdout.split()
    parts = {name: tests("-L", rf"^check\.{name}$") for name in names}
    parts["scripts/test.sh"] = tests("-LE", r"^check\.")
    for name, found in parts.items():
        expect(found, f"{name} runs no test")
        for other, others in parts.items():
            both = found & others if other != name else set()
            expect(not both, f"{sorted(both)} are in {name} and in {other}")
    lost = everything - set().union(*parts.values())
    expect(not lost, f"no part of scripts/check.sh runs {sorted(lost)}: cmake/test_parts.cmake names a part that is "
                     f"not in scripts/check.sh, which has {names}")
    rows = re.findall(r'^  "(\w+) (.+)"$', (ROOT / "cmake/test_parts.cmake").read_text(), re.MULTILINE)
    expect({name for name, _ in rows} == set(names), f"parts are {names}, rows of cmake/test_parts.cmake {rows}")
    for name, pattern in rows:
        pattern = pattern.replace("\\\\", "\\")
        expect(any(re.search(pattern, test) for test in parts[name]),
               f"cmake/test_parts.cmake: no test of '{name}' matches {pattern}")
    wrong = subprocess.run([ROOT / "scripts/check.sh", "fuzz", "nowhere"], capture_output=True, text=True)
    expect(wrong.returncode == 2 and "'nowhere'" in wrong.stderr, f"a part that is not there: {wrong}")
    listed = subprocess.run([ROOT / "scripts/check.sh"], check=True, capture_output=True, text=True).stdout
    jobs = re.findall(r"^(\w+) ", listed.split("\njob ")[1], re.MULTILINE)
    in_ci = re.search(r"name: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())[1].split(", ")
    expect(set(names) <= set(in_ci) <= {*names, *jobs}, f"CI runs {in_ci}: expected {names}, and some of the jobs {jobs}")
    for script in ("scripts/test.sh", "scripts/check.sh"):
        expect("run_tests.py" in (ROOT / script).read_text(), f"{script} does not use scripts/run_tests.py")
    print(f"{len(everything)} tests: " + ", ".join(f"{name} {len(found)}" for name, found in parts.items()))


main()
