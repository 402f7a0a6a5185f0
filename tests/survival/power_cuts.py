#!/usr/bin/env python3
"""Trains on from what a disk may hold after a power cut at any moment of a save.

  power_cuts.py SKEIN FOLDER [--cuts 300] [--layouts NAME;…] [--modes MODE;…] [--seed 1]

Two saves of a tiny run are written down, call by call, of all ranks (tests/survival/file_faults.cc). Then disks are
made of it, as they may be after a cut behind any of the calls. What fsync promised is there: the bytes of a file
that was synced, the names in a folder that was synced. Of everything else
  lost       nothing is there
  torn       names are there, of bytes that were written some sectors of 512 bytes: the others are zeros or missing
  reordered  any part is there, in any order: a later rename without an earlier one, sectors as above
On each disk the same command must go on to the last step, from the newest checkpoint whose commit was synced or a
newer one, with the bits of a run that nothing happened to, and `skein checkpoint verify` must pass afterwards.
Metrics and events of before the cut are not synced, and may be lost.

Prints a table; ends with 1 where a disk fails.
"""
import argparse
import collections
import copy
import ctypes
import os
import random
import shutil
import subprocess
import sys

import supervised
from file_faults import Faults, KINDS, LAYOUTS, Record, numbers, quiet_run, table, train
from supervised import events, metrics, work_folder

SECTOR = 512
MODES = ("lost", "torn", "reordered")
HEAD = ("layout", "unsynced", "calls", "disks", "newest synced", "newer", "failed")
STEPS, FIRST = 8, 2  # steps of the whole run, and before calls are written down

Call = collections.namedtuple("Call", "kind rank inode other folder to_folder offset name to data")


def read_calls(log):
    with open(log, "rb") as file:
        text = file.read()
    calls, at = [], 0
    lives = collections.Counter()  # an inode that is free is given to another file

    def node(inode):
        return inode, lives[inode]

    while at < len(text):
        record = Record.from_buffer_copy(text, at)
        at += ctypes.sizeof(Record)
        name, to = (text[at:at + record.name_bytes].decode(),
                    text[at + record.name_bytes:at + record.name_bytes + record.to_bytes].decode())
        at += record.name_bytes + record.to_bytes
        kind = KINDS[record.kind]
        lives[record.inode] += kind in ("create", "make folder")
        calls.append(Call(kind, record.rank, node(record.inode), node(record.other), node(record.folder),
                          node(record.to_folder), record.offset, name, to, text[at:at + record.bytes]))
        at += record.bytes
    return calls


class Disk:
    """What is on it: names of folders, bytes of files, by inode and which of its lives it is."""

    def __init__(self, run):
        self.root = os.stat(run).st_ino, 0
        self.folders, self.files = {}, {}
        for path, folders, files in os.walk(run):
            names = {name: (os.stat(os.path.join(path, name)).st_ino, 0) for name in folders + files}
            self.folders[os.stat(path).st_ino, 0] = names
            for name in files:
                with open(os.path.join(path, name), "rb") as file:
                    self.files[names[name]] = file.read()

    def write(self, call, chance=None):
        """Puts the bytes there; with `chance` only some of their sectors."""
        old = self.files.get(call.inode, b"")
        size = call.offset + len(call.data)
        new = bytearray(old.ljust(size, b"\0"))
        new[call.offset:size] = call.data
        if chance is not None:
            for sector in range(call.offset // SECTOR, (size + SECTOR - 1) // SECTOR):
                if chance.random() < 0.5:
                    part = slice(sector * SECTOR, min((sector + 1) * SECTOR, len(new)))
                    new[part] = old[part].ljust(part.stop - part.start, b"\0")
            if chance.random() < 0.5:
                new = new[:max(len(old), call.offset + chance.randrange(len(call.data) + 1))]
        self.files[call.inode] = bytes(new)

    def name(self, call):
        """Puts a change of names there, as if it were the only one."""
        names = self.folders.setdefault(call.folder, {})
        if call.kind in ("create", "link", "make folder"):
            names[call.name] = call.inode
        elif call.kind in ("unlink", "remove folder"):
            names.pop(call.name, None)
        elif call.kind in ("rename", "exchange"):
            names.pop(call.name, None)
            self.folders.setdefault(call.to_folder, {})[call.to] = call.inode
            if call.kind == "exchange":
                names[call.name] = call.other

    def make(self, path, inode=None):
        os.makedirs(path)
        for name, node in self.folders.get(self.root if inode is None else inode, {}).items():
            if node in self.files or node not in self.folders:
                with open(os.path.join(path, name), "wb") as file:
                    file.write(self.files.get(node, b""))
            else:
                self.make(os.path.join(path, name), node)


def is_durable(calls, cut):
    """Of each call before the cut: whether a sync between them promised that it stays."""
    synced, durable = set(), [False] * cut
    for i in range(cut - 1, -1, -1):
        call = calls[i]
        if call.kind == "sync":
            synced.add(call.inode)
        durable[i] = (call.inode if call.kind in ("write", "truncate") else call.folder) in synced
    return durable


def disk_after(before, calls, durable, mode, chance):
    disk = copy.deepcopy(before)
    for call, is_promised in zip(calls, durable):
        if call.kind == "make folder":
            disk.folders.setdefault(call.inode, {})
        if call.kind == "write":
            if is_promised or mode != "lost":
                disk.write(call, None if is_promised else chance)
        elif call.kind == "truncate":
            if is_promised or mode == "torn":
                disk.files[call.inode] = disk.files.get(call.inode, b"")[:call.offset].ljust(call.offset, b"\0")
        elif call.kind != "sync":
            if is_promised or mode == "torn" or (mode == "reordered" and chance.random() < 0.5):
                disk.name(call)
    return disk


def committed(calls, durable):
    """The newest step whose checkpoint has its name for good; 0: none of those written down."""
    return max((int(call.to[len("step-"):]) for call, is_promised in zip(calls, durable)
                if is_promised and call.kind in ("rename", "exchange")
                and call.to.startswith("step-") and call.to[len("step-"):].isdigit()), default=0)


def goes_on(skein, folder, data, run, settings, expected, weights, at_least):
    """What is wrong with a run that is started on such a disk, and where it began."""
    code, said = train(skein, folder, data, run, STEPS, settings)
    if code != 0:
        return f"ended with {code}: {said[-700:]}", 0
    start = events(run, "start")[-1]
    begun = start["step"]
    if begun < at_least:
        return f"went on from step {begun}, expected {at_least} or later: {said[-700:]}", begun
    found = {record["step"]: numbers(record) for record in metrics(run) if record["start"] == start["number"]}
    if sorted(found) != list(range(begun + 1, STEPS + 1)):
        return f"did the steps {sorted(found)} after {begun}", begun
    wrong = [step for step in found if found[step] != expected[step]]
    if wrong:
        return f"step {wrong[0]} has other bits", begun
    if supervised.weights(skein, run, STEPS) != weights:
        return "the exported weights differ from those of the quiet run", begun
    verified = subprocess.run([skein, "checkpoint", "verify", run], capture_output=True, text=True)
    return (f"skein checkpoint verify: {verified.stderr[-500:]}" if verified.returncode else ""), begun


def cut_layout(skein, folder, data, name, modes, count, chance):
    settings, run, log = LAYOUTS[name], os.path.join(folder, "run"), os.path.join(folder, "calls")
    quiet = quiet_run(skein, folder, data, "quiet", STEPS, settings)
    expected = {record["step"]: numbers(record) for record in metrics(quiet)}
    weights = supervised.weights(skein, quiet, STEPS)
    shutil.rmtree(quiet)
    for steps, plan in ((FIRST, None), (FIRST + 2, Faults(os.path.join(folder, "plan"), run, log=log))):
        before = Disk(run) if plan else None
        code, said = train(skein, folder, data, run, steps, settings, plan)
        if code != 0:
            raise RuntimeError(f"{run} ended with {code}: {said[-2000:]}")
    calls = read_calls(log)
    os.remove(log)
    rows, failures = [], []
    for mode in modes:
        cuts = [1 + i * len(calls) // (count // len(modes)) for i in range(count // len(modes))]
        counts = collections.Counter()
        for cut in sorted(set(min(cut, len(calls)) for cut in cuts)):
            shutil.rmtree(run)
            durable = is_durable(calls, cut)
            disk_after(before, calls[:cut], durable, mode, chance).make(run)
            at_least = max(FIRST, committed(calls[:cut], durable))
            problem, begun = goes_on(skein, folder, data, run, settings, expected, weights, at_least)
            counts["disks"] += 1
            counts["failed" if problem else "newer" if begun > at_least else "newest synced"] += 1
            if problem:
                last = calls[cut - 1]
                failures.append(f"{name}: {mode}, cut {cut} of {len(calls)} behind {last.kind} {last.name} of rank "
                                f"{last.rank}: {problem}")
                print(f"power_cuts: {failures[-1]}", flush=True)
        rows.append((name, mode, len(calls), *(counts[key] for key in HEAD[3:])))
        print(table(HEAD, rows[-1:]), flush=True)
    shutil.rmtree(run)
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--cuts", type=int, default=300, help="disks of each layout")
    parser.add_argument("--layouts", default="one worker;data 2, ZeRO 1;pipeline 2")
    parser.add_argument("--modes", default=";".join(MODES))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    skein, folder, data = work_folder(args, "cuts")
    chance = random.Random(args.seed)
    rows, failures = [], []
    for name in args.layouts.split(";"):
        more, wrong = cut_layout(skein, folder, data, name, args.modes.split(";"), args.cuts, chance)
        rows += more
        failures += wrong
    print(table(HEAD, rows))
    shutil.rmtree(folder)
    disks = sum(row[3] for row in rows)
    print(f"{disks} disks: {disks - len(failures)} went on with the same bits")
    return 1 if failures or disks == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
