#!/usr/bin/env python3
"""Builds the program that holds a test, and runs the test. scripts/test_one.sh, which says what NAME may be,
configures and calls it.

  test_one.py BUILD [--gdb | --no-run] NAME

The sources say which file has the test, build.ninja which program compiles that file, and what CMake wrote
when the program was built how ctest runs it.
"""
import argparse
import difflib
import fnmatch
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"^build (\S+)[^\n]*?: \w+_EXECUTABLE_LINKER__\S+ ([^\n|]*)(.*?)\n\n", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
ADD_TEST = re.compile(r"^add_test\(\[(=*)\[(.*?)\]\1\] +(.*)\)$", re.MULTILINE)
ARGUMENT = re.compile(r"\[==\[(.*?)\]==\]|(\S+)")
SUFFIXES = (".cc", ".h", ".cu")
MOST_LISTED = 20


class Mistake(Exception):
    """What NAME does not say: exit code 2."""


class Program:
    """A program of GoogleTests: its target, its path, the tests' prefix in ctest, its sources, and the list of its tests."""

    def __init__(self, build, path, objects, rest):
        self.path = build / path
        self.target = re.search(r"TEST_TARGET=(\S+)", rest)[1]
        self.prefix = re.search(r"TEST_PREFIX=(\S+)", rest)[1]
        self.list = Path(re.search(r'CTEST_FILE=(.+?)"? -D', rest)[1])
        self.sources = {source_of(name) for name in objects.split() if name.endswith("_test.cc.o")}

    def tests(self):
        """Of a program that is built: (name for ctest, name for GoogleTest, command)."""
        for _, name, text in ADD_TEST.findall(self.list.read_text()):
            command = [a or b for a, b in ARGUMENT.findall(text)]
            gtest = next(word for word in command if word.startswith("--gtest_filter=")).split("=", 1)[1]
            yield name, gtest, command


def source_of(name):
    """CMakeFiles/TARGET.dir/PATH.o, which a folder's own targets have behind the folder, and __ for .. in PATH."""
    folder, path = re.fullmatch(r"(.*?)CMakeFiles/[^/]+\.dir/(.*)\.o", name).groups()
    return os.path.normpath(folder + "/".join(".." if part == "__" else part for part in path.split("/")))


def programs(build):
    text = (build / "build.ninja").read_text()
    return [Program(build, *match.groups()) for match in LINK.finditer(text) if "TEST_PREFIX=" in match[3]]


def tests_of_sources():
    """Path to (suite, name) of its tests."""
    found = {}
    for folder in ("skein", "tests"):
        for path in sorted((ROOT / folder).rglob("*_test.cc")):
            found[str(path.relative_to(ROOT))] = TEST.findall(path.read_text(errors="replace"))
    return found


def is_named(name, suite, test):
    """Whether NAME, without its room, may mean the test, whatever its parameter."""
    if "." not in name:
        return name in (suite, test) or ("*" in name and fnmatch.fnmatchcase(f"{suite}.{test}", name))
    of_suite, of_test = name.split(".", 1)
    return fnmatch.fnmatchcase(suite, of_suite.split("/")[-1]) and fnmatch.fnmatchcase(test, of_test.split("/")[0])


def test_file(name):
    """The file of tests that a path means, relative to the repository; None if NAME is no path."""
    path = Path(name)
    if path.suffix not in SUFFIXES or "*" in name:
        return None
    path = path if path.is_absolute() else ROOT / path
    name = os.path.relpath(path, ROOT)
    if not path.exists():
        raise Mistake(f"there is no file {name}")
    if not path.stem.endswith("_test"):
        tests = path.with_name(path.stem + "_test.cc")
        if not tests.exists():
            beside = ", ".join(sorted(other.name for other in path.parent.glob("*_test.cc"))) or "none"
            raise Mistake(f"{name} has no {tests.name} beside it; tests in its folder: {beside}")
        path = tests
    return os.path.relpath(path, ROOT)


def listed(names):
    names = sorted(set(names))
    more = [f"  … and {len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    return "".join(f"\n{line}" for line in [f"  {name}" for name in names[:MOST_LISTED]] + more)


def candidates(name, names):
    """Names that somebody may have meant."""
    word = name.rsplit("/", 1)[-1].strip("*").lower()
    near = [other for other in names if word and word in other.lower()]
    if not near:
        parts = {}
        for other in names:
            bare = other.split("/", 1)[-1]
            for part in (bare, *bare.split(".")):
                parts.setdefault(part, other)
        near = [parts[part] for part in difflib.get_close_matches(name.split("/", 1)[-1], parts, 5)]
    return near


class Finder:
    def __init__(self, build):
        self.build = build
        self.sources = tests_of_sources()
        self.programs = programs(build)

    def holders(self, source):
        return [program for program in self.programs if source in program.sources]

    def find(self, name):
        """(program, [(suite, test)]); None if GoogleTest has no such test."""
        file = test_file(name)
        prefixes = {program.prefix for program in self.programs}
        room = name.split("/", 1)[0] + "/"
        room = room if not file and room in prefixes else ""
        bare = name[len(room):]
        wanted = {}
        for source, tests in self.sources.items():
            meant = tests if source == file else [] if file else [test for test in tests if is_named(bare, *test)]
            if meant:
                wanted[source] = meant
        if file and not wanted:
            raise Mistake(f"{file} has no test: expected TEST, TEST_F or TEST_P")
        if any(not self.holders(source) for source in wanted):
            # A file that is newer than the build: CMake looks for files whenever Ninja runs.
            make(self.build, ["build.ninja"])
            self.programs = programs(self.build)
        found = [(program, source) for source in wanted for program in self.holders(source)
                 if not room or program.prefix == room]
        if not room and any(program.prefix != "cuda_emulated/" for program, _ in found):
            found = [pair for pair in found if pair[0].prefix != "cuda_emulated/"]
        if wanted and not found and not room:
            raise Mistake(f"no program of {self.build.name}/ compiles {', '.join(wanted)}")
        if len({program.target for program, _ in found}) > 1:
            names = [f"{program.prefix}{suite}.{test}" for program, source in found for suite, test in wanted[source]]
            raise Mistake(f"'{name}' means tests of several programs; name those of one:{listed(names)}")
        return (found[0][0], sum((wanted[source] for _, source in found), [])) if found else None

    def names(self):
        for program in self.programs:
            for source in program.sources:
                for suite, test in self.sources.get(source, []):
                    yield f"{program.prefix}{suite}.{test}"


def make(build, targets):
    if subprocess.run(["cmake", "--build", str(build), "--target", *targets], stdout=sys.stderr).returncode:
        raise SystemExit(1)


def chosen_tests(name, program, wanted):
    """The tests of a program that is built. A NAME with a parameter means that one alone."""
    tests = [test for test in program.tests()
             if (test[1].split(".")[0].split("/")[-1], test[1].split(".")[1].split("/")[0]) in wanted]
    if not tests:
        raise Mistake(f"{program.target} lists no test for '{name}': has its TEST_P no INSTANTIATE_TEST_SUITE_P?")
    bare = name.removeprefix(program.prefix)
    if "/" not in bare or Path(name).suffix in SUFFIXES:
        return tests
    patterns = (bare, "*/" + bare)
    exact = [test for test in tests if name == test[0] or
             any(bare == known or any(fnmatch.fnmatchcase(known, pattern) for pattern in patterns)
                 for known in (test[0].removeprefix(program.prefix), test[1]))]
    if not exact:
        raise Mistake(f"no test matches '{name}'; there are{listed(test[0] for test in tests)}")
    return exact


def prepare_debugger(build, command):
    """build/one_test and build/one_test.env; cppdbg of VS Code reads the latter."""
    variables = [word for word in command[1:] if re.match(r"[A-Z_]+=", word)]
    program = next(word for word in command if word.startswith(str(build)))
    link = build / "one_test"
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    gtest = next(word for word in command if word.startswith("--gtest_filter="))
    variables.append("GTEST_FILTER=" + gtest.split("=", 1)[1])
    (build / "one_test.env").write_text("".join(f"{variable}\n" for variable in variables))
    print(f"{link.relative_to(ROOT)} is {program}; it runs in {build.relative_to(ROOT)}/ with the variables of "
          f"{link.relative_to(ROOT)}.env")


def gtest_command(tests, gdb):
    command = list(tests[0][2])
    filters = [i for i, word in enumerate(command) if word.startswith("--gtest_filter=")]
    command[filters[0]] = "--gtest_filter=" + ":".join(test[1] for test in tests)
    if gdb:
        program = next(i for i, word in enumerate(command) if i and "=" not in word)
        command[program:program] = ["gdb", "-q", "--args"]
    return command


def tests_of_ctest(build, name):
    """Tests that are no GoogleTests, such as survival/soak: all, and those that match."""
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True)
    tests = [test for test in json.loads(shown.stdout)["tests"]
             if not any(word.startswith("--gtest_filter=") for word in test.get("command", ["--gtest_filter="]))]
    return tests, [test for test in tests if fnmatch.fnmatchcase(test["name"], name)]


def targets_of(build, finder, test):
    """What a test needs that is a script: its part of scripts/check.sh, or the program and what is preloaded into it."""
    labels = sum((prop["value"] for prop in test["properties"] if prop["name"] == "LABELS"), [])
    targets = [label.replace("check.", "check_") for label in labels if label.startswith("check.")]
    if not targets and not test["name"].startswith(("lint/", "scripts/")):
        targets = ["skein", "skein_file_faults", "skein_system_faults"]
    return targets + [program.target for program in finder.programs if str(program.path) in test["command"]]


def without_long_ones(tests):
    """Without the tests that are left to scripts/check.sh (cmake/test_parts.cmake), unless all are."""
    rows = re.findall(r'^  "(\w+) (.+)"$', (ROOT / "cmake/test_parts.cmake").read_text(), re.MULTILINE)
    parts = [(part, re.compile(pattern.replace("\\\\", "\\"))) for part, pattern in rows]
    long_ones = {test[0]: part for test in tests for part, pattern in parts if pattern.search(test[0])}
    kept = [test for test in tests if test[0] not in long_ones]
    if not kept or not long_ones:
        return tests
    names = ", ".join(f"{name} (scripts/check.sh {part})" for name, part in sorted(long_ones.items()))
    print(f"left out, because long: {names}", file=sys.stderr)
    return kept


def build_gtest(build, name, program, wanted):
    # Programs of tests/ start build/skein, and may preload faults into it.
    make(build, [program.target] + (["skein", "skein_system_faults"] if program.prefix == "tests/" else []))
    return without_long_ones(chosen_tests(name, program, set(wanted)))


def build_script(build, name, finder):
    """The one test of ctest that NAME means and that is a script."""
    scripts, tests = tests_of_ctest(build, name)
    if not tests:
        near = candidates(name, [*finder.names(), *(test["name"] for test in scripts)])
        raise Mistake(f"no test matches '{name}'" + (f"; did you mean{listed(near)}" if near else
                      f"; `ctest --test-dir {build.name} -N` lists all"))
    if len(tests) > 1:
        raise Mistake(f"'{name}' means several tests; name one:{listed(test['name'] for test in tests)}")
    targets = targets_of(build, finder, tests[0])
    if targets:
        make(build, targets)
    return tests


def main():
    parser = argparse.ArgumentParser(prog="test_one.sh", usage="test_one.sh [--preset PRESET] [--gdb | --no-run] NAME")
    parser.add_argument("build")
    parser.add_argument("name")
    parser.add_argument("--gdb", action="store_true")
    parser.add_argument("--no-run", action="store_true")
    args = parser.parse_args()
    build = ROOT / args.build
    started = time.monotonic()
    finder = Finder(build)
    found = finder.find(args.name)
    if found:
        tests = build_gtest(build, args.name, *found)
        command, cwd = gtest_command(tests, args.gdb), build
        if args.no_run:
            prepare_debugger(build, command)
            return 0
    else:
        tests = build_script(build, args.name, finder)
        if args.gdb or args.no_run:
            raise Mistake(f"{args.name} is a script: --gdb and --no-run are for tests of GoogleTest")
        pattern = f"^{re.escape(tests[0]['name'])}$"
        command, cwd = ["ctest", "--test-dir", str(build), "-R", pattern, "--verbose", "--no-tests=error"], ROOT
    built = time.monotonic()
    status = subprocess.run(command, cwd=cwd).returncode
    ended = time.monotonic()
    print(f"{len(tests)} test{'s' if len(tests) > 1 else ''} {'FAILED' if status else 'passed'}: "
          f"built in {built - started:.1f} s, ran {ended - built:.1f} s")
    return 1 if status else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        print(f"test_one: {mistake}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
