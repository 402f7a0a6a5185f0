#!/usr/bin/env python3
"""Runs a command for at most so many seconds, and ends whatever it started before it returns.

    within.py SECONDS COMMAND…

Unlike timeout(1) it also ends what began a process group or a session of its own, or was left behind
in the background: a process that stays on a GPU disturbs all that is measured after it. What does not
end within 5 seconds of SIGTERM is killed. The exit code is the command's; 124 where its time was over,
128 + N where signal N ended it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 5


def descendants():
    """Ids of the processes below this one, by /proc; a process that ends meanwhile is left out."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                state, parent = stat.read().rsplit(")", 1)[1].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            parents[int(name)] = int(parent)
    below, found = {os.getpid()}, None
    while found != set():
        found = {child for child, parent in parents.items() if parent in below} - below
        below |= found
    return below - {os.getpid()}


def end(number):
    for process in descendants():
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def end_all():
    give_up = time.monotonic() + PATIENCE_S
    end(signal.SIGTERM)
    while descendants() and time.monotonic() < give_up:
        time.sleep(0.05)
    while descendants():
        end(signal.SIGKILL)
        time.sleep(0.05)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    # Orphans come to this process instead of to init, so that it finds them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        process = subprocess.Popen(sys.argv[2:])
        code = process.wait(float(sys.argv[1]))
        return code if code >= 0 else 128 - code
    except subprocess.TimeoutExpired:
        return 124
    except OSError as error:
        print(f"within.py: {error}", file=sys.stderr)
        return 127
    finally:
        end_all()


sys.exit(main())
