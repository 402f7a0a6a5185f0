#!/usr/bin/env python3
"""Flips bits in the memory of workers that train, and tells which of them the run finds.

  bit_flips.py SKEIN FOLDER [--flips 40] [--workers 4] [--seed 1]
  bit_flips.py SKEIN FOLDER --false-alarms STEPS [--workers 4]

A tiny model. A worker is stopped at a random moment, one random bit of one of its arenas is changed through
/proc/PID/mem, and it goes on. A flip is found where a `wrong_bits` event follows; its rank must be the right one, and
the steps that are done again must have the bits of a run that was left alone. One that is not found shows
in losses or norms of the next steps, silently, or is not seen there. The second form trains without any flip: no alarm
may come.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import supervised  # noqa: E402

PLACES = {"weights": "weights", "optimizer": "moments", "gradients": "gradient sums",
          "workspace": "buffers of collectives, gradients of activations, scratch", "activations": "activations"}
STATE = ("weights", "optimizer")
FIRST_STEP = 20  # of a struck run, from a checkpoint of the quiet one
STEPS_TO_SHOW = 4  # a flip that matters does so within these
LAST_STEP = 400


class Run:
    """A run in a folder of its own, and what it has written so far."""

    def __init__(self, args, data, name, steps, start="", **settings):
        self.path = os.path.join(args.folder, name)
        config = os.path.join(args.folder, name + ".toml")
        with open(config, "w") as out:
            out.write(supervised.CONFIG.format(dir=self.path, steps=steps, data=data, workers=args.workers, nodes=1,
                                         ranks=args.workers, rendezvous="", sequences=args.workers))
        # Wide enough for the padding of moments, where a flip does nothing, to be a small part of them.
        settings = {"model.hidden_size": 128, "model.intermediate_size": 256, "run.resume": start or "auto",
                    "checkpoint.every_steps": FIRST_STEP if not start else 10 ** 6, "checkpoint.keep": 10 ** 6,
                    "checkpoint.memory_every_steps": 5, "launch.hang_timeout_s": 60,
                    "launch.collective_timeout_s": 60, **settings}
        command = [args.skein, "train", config]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        self.log = open(os.path.join(args.folder, name + ".log"), "a")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.steps, self.events, self.step = {}, [], 0
        self.read_bytes = collections.Counter()

    def lines(self, name):
        try:
            with open(os.path.join(self.path, name), "rb") as file:
                file.seek(self.read_bytes[name])
                text = file.read()
        except FileNotFoundError:
            return []
        text = text[:text.rfind(b"\n") + 1]
        self.read_bytes[name] += len(text)
        return [json.loads(line) for line in text.splitlines() if line.startswith(b"{")]

    def look(self):
        self.events += self.lines("events.jsonl")
        for line in self.lines("metrics.jsonl"):
            self.step = line["step"]
            self.steps[self.step] = (line["loss"], line["grad_norm"], line["param_norm"])

    def of(self, event):
        return [one for one in self.events if one["event"] == event]

    def wait(self, reached, seconds=600):
        """Whether `reached` came to hold before the run ended."""
        deadline = time.time() + seconds
        while True:
            ended = self.process.poll() is not None
            self.look()
            if reached():
                return True
            if ended:
                return False
            if time.time() > deadline:
                raise RuntimeError(f"bit_flips: no news from the run for {seconds} s: see {self.log.name}")
            time.sleep(0.005)

    def arenas(self, rank):
        """The process of a rank and where its arenas lie, as its log says."""
        with open(os.path.join(self.path, "logs", f"rank-{rank:05}.log")) as log:
            text = log.read()
        process = [int(found) for found in re.findall(rf"rank {rank} of .*, process (\d+)", text)][-1]
        return process, json.loads(re.findall(r"arenas (\{.*\})", text)[-1])

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def flip(process, address, bit):
    with open(f"/proc/{process}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        byte = memory.read(1)[0]
        memory.seek(address)
        memory.write(bytes([byte ^ 1 << bit]))


def strike(run, place, rank, chance):
    """Flips a bit; returns the last step that was done, or None where the worker is gone."""
    process, arenas = run.arenas(rank)
    if place not in arenas or not supervised.send(process, signal.SIGSTOP):
        return None
    run.look()
    step = run.step
    arena = arenas[place]
    flip(process, arena["address"] + chance.randrange(arena["bytes"]), chance.randrange(8))
    supervised.send(process, signal.SIGCONT)
    return step


def differs(run, quiet, after):
    return any(run.steps[step] != quiet[step] for step in run.steps if step > after and step in quiet)


def judge(run, quiet, step, rank):
    """What became of a flip in the step after `step`, and what is wrong with how it was found."""
    alarms, starts = len(run.of("wrong_bits")), len(run.of("start"))
    lives = run.wait(lambda: len(run.of("wrong_bits")) > alarms or len(run.of("start")) > starts or
                     run.step >= step + STEPS_TO_SHOW)
    if len(run.of("wrong_bits")) > alarms:
        event = run.of("wrong_bits")[-1]
        wrong = [] if event["rank"] == rank else [f"rank {event['rank']} is named, expected {rank}"]
        if not run.wait(lambda: len(run.of("start")) > starts and run.step >= step + STEPS_TO_SHOW):
            return "found", wrong + ["the run ended"]
        at = int(re.search(r"at step (\d+)", run.of("generation")[-1]["reason"]).group(1))
        if differs(run, quiet, step):
            wrong.append("the steps that were done again have other bits")
        return "found" if at <= step + 1 else "later", wrong
    if not lives or len(run.of("start")) > starts:
        return "otherwise", []
    return "silent" if differs(run, quiet, step) else "unseen", []


def false_alarms(args, data):
    # The smallest model, for as many steps as can be.
    run = Run(args, data, "alone", args.false_alarms, **{
        "model.hidden_size": 16, "model.intermediate_size": 16, "model.num_hidden_layers": 1,
        "data.sequence_length": 16, "log.every_steps": 1000,
        "checkpoint.every_steps": 10 ** 6, "checkpoint.memory_every_steps": 0})
    began = time.time()
    run.wait(lambda: False, float("inf"))
    print(f"{run.step} steps in {time.time() - began:.0f} s: {len(run.of('wrong_bits'))} false alarms, "
          f"exit code {run.process.returncode}")
    return 0 if run.step == args.false_alarms and not run.of("wrong_bits") else 1


def many_flips(args, data):
    chance = random.Random(args.seed)
    # One run of all that the struck ones may do, and its checkpoint to begin at.
    quiet = Run(args, data, "quiet", LAST_STEP)
    quiet.wait(lambda: False, 600)
    if quiet.process.returncode != 0 or quiet.of("wrong_bits"):
        print(f"bit_flips: the run without flips failed: see {quiet.log.name}")
        return 1
    start = os.path.join(quiet.path, "checkpoints", f"step-{FIRST_STEP:08}")
    outcomes = {place: collections.Counter() for place in PLACES}
    complaints, done, episode, run, is_clean = [], 0, 0, None, False
    while done < args.flips:
        if run is None or run.process.poll() is not None or run.step > LAST_STEP - 50:
            if run:
                run.end()
                shutil.rmtree(run.path)
            episode += 1
            run, is_clean = Run(args, data, f"struck{episode}", LAST_STEP, start), True
        if not run.wait(lambda: run.step >= FIRST_STEP + 2):
            print(f"bit_flips: the run ended before it was struck: see {run.log.name}")
            return 1
        place = args.only or min(PLACES, key=lambda one: sum(outcomes[one].values()))
        if place in STATE and not is_clean:
            run.process.kill()
            run.process.wait()
            continue
        rank = chance.randrange(args.workers)
        until = time.time() + chance.uniform(0, 0.05)
        while time.time() < until:
            run.look()
        step = strike(run, place, rank, chance)
        if step is None:
            continue
        outcome, wrong = judge(run, quiet.steps, step, rank)
        outcomes[place][outcome] += 1
        complaints += [f"flip {done} in {place} of rank {rank} at step {step}: {text}" for text in wrong]
        done += 1
        is_clean &= place in STATE  # what is not seen may live on in low bits, and show later
        # The next wrong bits would be the machine's.
        if outcome != "unseen":
            run.process.kill()
            run.process.wait()
        if done % 20 == 0:
            print(f"{done} flips, {episode} runs", flush=True)
    run.end()
    return tell(outcomes, complaints) or (0 if args.only or soon_again(args, data, chance) else 1)


def soon_again(args, data, chance):
    """Wrong bits that soon come back on the only machine end the run, and name it."""
    run, rank = Run(args, data, "again", 10 ** 6), chance.randrange(args.workers)
    while run.wait(lambda: run.step >= 3):
        alarms = len(run.of("wrong_bits"))
        step = strike(run, "weights", rank, chance)
        if step is None or not run.wait(lambda: len(run.of("wrong_bits")) > alarms or run.step >= step + STEPS_TO_SHOW):
            break
        run.wait(lambda: run.step >= step + 2)
    run.process.wait(60)
    found = [event["persistent"] for event in run.of("wrong_bits")]
    print(f"wrong bits twice within 100 steps: the run ends with {run.process.returncode}, told as persistent: {found}")
    return run.process.returncode == 1 and found == [False, True]


def tell(outcomes, complaints):
    columns = ("found", "later", "otherwise", "silent", "unseen")
    print(f"{'place':12}{'flips':>7}{''.join(f'{column:>11}' for column in columns)}   found of those seen")
    for place, counts in outcomes.items():
        total, matter = sum(counts.values()), sum(counts.values()) - counts["unseen"]
        share = f"{100 * counts['found'] / matter:.1f} %" if matter else "-"
        print(f"{place:12}{total:7}{''.join(f'{counts[column]:11}' for column in columns)}   {share:>8}  "
              f"({PLACES[place]})")
    print("found      within one step, by its rank, and the step done again to the bits of a quiet run\n"
          "later      the same after more steps\n"
          "otherwise  a crash, or a loss that is not finite\n"
          f"silent     losses or norms of the next {STEPS_TO_SHOW} steps differ\n"
          "unseen     they do not: the byte is not used any more, or not at all, or its bit is a low one")
    for text in complaints:
        print("bit_flips:", text)
    state = sum((outcomes[place] for place in STATE), collections.Counter())
    lost = state["silent"] + state["later"]
    # While a shard is updated a flip in it reaches all ranks alike: of a step this short that is a large part.
    if lost > 1 + 0.05 * sum(state.values()) or complaints:
        print(f"bit_flips: {lost} flips in weights and moments were not found at once, expected hardly any")
        return 1
    return 0 if sum(counts["found"] for counts in outcomes.values()) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--flips", type=int, default=40)
    parser.add_argument("--only", choices=list(PLACES))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--false-alarms", type=int, metavar="STEPS")
    args = parser.parse_args()
    args.skein = os.path.abspath(args.skein)
    os.makedirs(args.folder, exist_ok=True)
    args.folder = tempfile.mkdtemp(prefix="flips-", dir=os.path.abspath(args.folder))
    data = supervised.make_data(args.skein, args.folder)
    code = (false_alarms if args.false_alarms else many_flips)(args, data)
    if code == 0:
        shutil.rmtree(args.folder)
    else:
        print(f"bit_flips: what was left lies in {args.folder}")
    return code


if __name__ == "__main__":
    sys.exit(main())
