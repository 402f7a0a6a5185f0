#!/usr/bin/env python3
"""Runs a command for at most so many seconds, and ends whatever it started before it returns.

    within.py [--parent ID] SECONDS COMMAND…

    --parent    the process that starts this one, which may have ended before this one can look

Unlike timeout(1) it also ends what began a process group or a session of its own, or was left behind
in the background: a process that stays on a GPU disturbs all that is measured after it. A signal, and
the end of the process that started this one, killed or not, end all of it, too. What does not end
within 5 seconds of SIGTERM, or 1 after a signal, is killed. The exit code is the command's; 124 where
its time was over, 128 + N where signal N ended it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 5
HURRY_S = 1  # who sends a signal kills soon after
KILL_S = 10
LIBC = ctypes.CDLL(None)


def die_with(parent):
    """In a new process, before its program: SIGKILL as soon as its parent is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


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


def end_all(patience):
    give_up = time.monotonic() + patience
    end(signal.SIGTERM)
    while descendants() and time.monotonic() < give_up:
        time.sleep(0.05)
    give_up = time.monotonic() + KILL_S
    while left := descendants():
        if time.monotonic() > give_up:  # it waits in the kernel, for a driver or a disk
            print(f"within.py: killed, and still there: processes {sorted(left)}; look with ps and "
                  "nvidia-smi: where a driver hangs, the machine must be started anew",
                  file=sys.stderr, flush=True)
            return
        end(signal.SIGKILL)
        time.sleep(0.05)


def wait_for(process, seconds, signals):
    """The command's exit code; 124 where its time is over; minus the signal that came meanwhile."""
    give_up = time.monotonic() + seconds
    while (code := process.poll()) is None:
        left = give_up - time.monotonic()
        if left <= 0:
            return 124
        came = signal.sigtimedwait(signals | {signal.SIGCHLD}, left)
        if came and came.si_signo in signals:
            return -came.si_signo
    return code if code >= 0 else 128 - code


def main():
    arguments, parent = sys.argv[1:], os.getppid()
    if arguments[:1] == ["--parent"]:
        parent = int(arguments[1])
        del arguments[:2]
    if len(arguments) < 2:
        sys.exit(__doc__)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    # Orphans come to this process instead of to init, so that it finds them.
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # A shell has its background ignore these two; the command is to heed them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signals = {signal.SIGTERM, signal.SIGINT}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # by nohup(1)
        signals.add(signal.SIGHUP)
    # Blocked and asked for, so that none comes in the middle of the ending.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals | {signal.SIGCHLD})
    me = os.getpid()

    def prepare():
        die_with(me)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        process = subprocess.Popen(arguments[1:], preexec_fn=prepare)
    except OSError as error:
        print(f"within.py: {error}", file=sys.stderr)
        return 127
    code = wait_for(process, float(arguments[0]), signals)
    end_all(HURRY_S if code < 0 else PATIENCE_S)
    if code < 0:  # by the signal itself, so that a shell ends as well
        signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        os.kill(me, -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
