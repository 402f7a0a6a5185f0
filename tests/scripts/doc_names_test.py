#!/usr/bin/env python3
"""What the pages say of the source and its tests is there.

  tests/scripts/doc_names_test.py

* A test that a page names, `Suite.Test`, `Suite.*` or `.Test` (of the suite named before), is in the
  sources.
* docs/promises.md says that `ctest -R NAME` runs what it names, so it names no program of tests
  (`plan_parallel_test`).
* The number of lines of the tour in docs/architecture.md is right to a tenth.
* The number of schedules of faults in docs/failures_tested.md is what simulation_test.cc runs.

Exit code 0: all of it holds; 1: each line says what does not, and what is there.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
SUITE_OF_PARAMETERS = re.compile(r"\bINSTANTIATE_TEST_SUITE_P\(\s*\w+\s*,\s*(\w+)")
NAMED = re.compile(r"`(\w*)\.([A-Z]\w*|\*)`")
# Names of the same form that are no tests.
NO_TESTS = {"SessionLog.START"}


def suites():
    found = {}
    for folder in ("skein", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h", ".cu"):
                continue
            text = path.read_text(errors="replace")
            for suite, test in TEST.findall(text):
                found.setdefault(suite, set()).add(test)
            for suite in SUITE_OF_PARAMETERS.findall(text):
                found.setdefault(suite, set())
    return found


def pages():
    return sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def wrong_names(page, known):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        before = None
        for suite, test in NAMED.findall(line):
            before = suite = suite or before
            if f"{suite}.{test}" in NO_TESTS or suite is None or not suite[0].isupper():
                continue
            if suite not in known:
                yield f"{page.name}:{number}: {suite}.{test}: no test suite {suite}"
            elif test != "*" and test not in known[suite]:
                yield f"{page.name}:{number}: {suite}.{test}: no such test of {suite}"
        for program in re.findall(r"`(\w+_test)`", line) if page.name == "promises.md" else []:
            yield f"{page.name}:{number}: {program}: a program; expected a test as ctest names it"


def wrong_lines_of_tour():
    text = (ROOT / "docs/architecture.md").read_text()
    tour = text.split("## A tour", 1)[1].split("\nThen ", 1)[0]
    said = int(re.search(r"some ([\d,]+) lines together", tour)[1].replace(",", ""))
    files = re.findall(r"^\| `([\w/.]+)` \|", tour, re.MULTILINE)
    lines = sum(len((ROOT / "skein" / name).read_text().splitlines()) for name in files)
    if abs(lines - said) > 0.1 * lines:
        yield f"architecture.md: the tour of {len(files)} files has {lines} lines, not some {said}"


def wrong_schedules():
    source = (ROOT / "skein/supervise/simulation/simulation_test.cc").read_text()
    each = int(re.search(r"kSchedules = (\d+);", source)[1])
    begin, end = re.search(r"FaultSchedules, testing::Range\((\d+), (\d+)\)", source).groups()
    schedules = f"{each * (int(end) - int(begin)):,}"
    for name, text in (("simulation_test.cc", source),
                       ("failures_tested.md", (ROOT / "docs/failures_tested.md").read_text())):
        for said in re.findall(r"([\d,]+) schedules of faults", text):
            if said != schedules:
                yield f"{name}: {said} schedules of faults, where the test runs {schedules}"


def main():
    known = suites()
    wrong = [problem for page in pages() for problem in wrong_names(page, known)]
    wrong += [*wrong_lines_of_tour(), *wrong_schedules()]
    for problem in wrong:
        print(f"doc_names_test: {problem}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
