#!/usr/bin/env python3
"""Plants faults into the program, one at a time, and sees whether the test that is named for each
fails: a test that passes whatever the program does is no test.

  scripts/plant_faults.py [NAME…]       plants these, or all of them (the first time it compiles for
                                        many minutes, later ccache has most of it)
  scripts/plant_faults.py --list        says which there are
  scripts/plant_faults.py --check       says which no longer fit the sources, and plants none
  scripts/plant_faults.py --folder DIR  works in DIR, which must not be there yet, instead of in
                                        build-faults

It works on what is committed, in a git worktree of its own, without CUDA, and removes that in the end.
A test that hangs or dies has caught the fault, too. Ends with 1 if a fault was missed or did not
compile. The faults are in scripts/planted_faults.py.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from planted_faults import FAULTS

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120  # for a test


def target_of(fault):
    return f"skein_{fault.file.split('/')[1]}_test"


def call(*command, **options):
    """What it printed; fails with that."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-3000:]}")
    return done.stdout


def build(folder, targets):
    call("cmake", "--build", "build", "-j", str(os.cpu_count()), "--target", *targets, cwd=folder)


def passes(folder, target, tests):
    """Whether there are such tests, and all of them pass in time."""
    command = [f"build/{target}", "--gtest_filter=" + tests]
    test = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors="replace", start_new_session=True)
    try:
        output, _ = test.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    finally:  # with all processes that it started
        try:
            os.killpg(test.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        test.wait()
    return test.returncode == 0 and re.search(r"\[  PASSED  \] [1-9]", output) is not None


def plant(folder, fault):
    """Prints a line; whether the fault was caught."""
    start = time.monotonic()
    path = folder / fault.file
    text = path.read_text()
    path.write_text(text.replace(fault.old, fault.new))
    try:
        build(folder, [target_of(fault)])
        found = "MISSED" if passes(folder, target_of(fault), fault.test) else "caught"
    except RuntimeError as error:
        found = "BROKEN"
        print(error)
    finally:
        path.write_text(text)
    seconds = time.monotonic() - start
    print(f"{found}  {fault.name}  by {fault.test}  ({seconds:.0f} s)", flush=True)
    return found == "caught"


def plant_all(folder, faults):
    """In a worktree that was just made; how many were caught."""
    (folder / ".deps").symlink_to(ROOT / ".deps")
    for fault in faults:
        times = (folder / fault.file).read_text().count(fault.old)
        if times != 1:
            raise RuntimeError(f"{fault.name}: in {fault.file} its text stands {times} times, expected once")
    tests = {}  # by target
    for fault in faults:
        tests.setdefault(target_of(fault), {})[fault.test] = None
    call("cmake", "--preset", "release", "-DSKEIN_CUDA=OFF", cwd=folder)
    build(folder, tests)
    for target, names in tests.items():
        for name in names:
            if not passes(folder, target, name):
                raise RuntimeError(f"{name} of {target} does not pass without a fault, or is not there")
    return sum([plant(folder, fault) for fault in faults])


def misfit(fault):
    file = ROOT / fault.file
    count = file.read_text().count(fault.old) if file.exists() else 0
    if count != 1:
        yield (f"scripts/planted_faults.py: {fault.name}: its text stands {count} times in {fault.file}, "
               "expected once")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "build-faults")
    options = parser.parse_args()
    unknown = set(options.names) - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    faults = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.list:
        for fault in faults:
            print(f"{fault.name}  {fault.file}  by {fault.test}")
        return 0
    if options.check:
        misfits = [line for fault in faults for line in misfit(fault)]
        print("".join(f"{line}\n" for line in misfits), end="")
        return 1 if misfits else 0
    start = time.monotonic()
    folder = options.folder.resolve()
    try:
        call("git", "-C", str(ROOT), "worktree", "add", "--detach", str(folder), "HEAD")
        try:
            num_caught = plant_all(folder, faults)
        finally:
            call("git", "-C", str(ROOT), "worktree", "remove", "--force", str(folder))
    except RuntimeError as error:
        print(error)
        return 1
    print(f"{num_caught} of {len(faults)} caught ({time.monotonic() - start:.0f} s)")
    return 0 if num_caught == len(faults) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
