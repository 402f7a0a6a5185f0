#!/usr/bin/env python3
"""For scripts/gpu_check.sh: how long `skein train` takes from its start to the end of its first step.

    gpu_start.py SKEIN FOLDER CONFIG [--set KEY=VALUE…]

Makes a corpus of a made-up language in FOLDER, starts the run of CONFIG twice, each with a folder of
its own, and kills it after its first step, before anything is saved: the second start finds the
algorithms that the first one measured. Prints a JSON line a start: seconds to the beginning of the
first step, and to its end. Exit code 1 where a start ends without a first step. In the environment:
STARTS, a file that gets each line as well, and AFTER_RUN, a command that runs then.
"""

import functools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import within


def make_corpus(skein, folder):
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlucm", k=draw.randint(2, 8))) for _ in range(400)]
    with open(folder / "documents.jsonl", "w") as documents:
        for _ in range(2000):
            text = " ".join(draw.choices(words, k=draw.randint(5, 600)))
            documents.write(json.dumps({"text": text}) + "\n")
    corpus, tokenizer = folder / "corpus.arrow", folder / "tokenizer"
    for command in (["ingest", "--out", corpus, folder / "documents.jsonl"],
                  ["tokenizer", "--vocab-size", "320", "--out", tokenizer, corpus]):
        subprocess.run([skein, "data", *command], check=True, stdout=subprocess.DEVNULL)
    return ["--set", f"data.train={corpus}", "--set", f"data.tokenizer={tokenizer}"]


def start(command):
    """Seconds to the beginning and to the end of the first step; None where it did not come."""
    begin, begins = time.monotonic(), None
    train = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             preexec_fn=functools.partial(within.die_with, os.getpid()))
    try:
        for line in train.stdout:
            seconds = time.monotonic() - begin
            print(f"{seconds:7.2f} s  {line.rstrip()}", file=sys.stderr)
            if "beginning from random weights" in line:
                begins = seconds
            if re.search(r"\bstep +1/", line):
                return begins, seconds
    finally:
        train.kill()
        train.wait()
    return begins, None


def tell(line):
    print(line, flush=True)
    if os.environ.get("STARTS"):
        with open(os.environ["STARTS"], "a") as starts:
            starts.write(line + "\n")
    if os.environ.get("AFTER_RUN"):
        subprocess.run([os.environ["AFTER_RUN"]], check=False)


def main():
    skein, folder, config, *options = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    options += make_corpus(skein, folder)
    for number in (1, 2):
        begins, ends = start([skein, "train", config, *options, "--set",
                              f"run.dir={folder / f'run-{number}'}"])
        if ends is None:
            sys.exit("gpu_start: the run ended before its first step")
        tell(json.dumps({"start": number, "first_step_begins_s": begins and round(begins, 2),
                         "first_step_ends_s": round(ends, 2)}))


if __name__ == "__main__":
    main()
