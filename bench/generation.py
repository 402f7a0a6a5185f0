#!/usr/bin/env python3
"""Greedy generation by skein, by transformers with its cache and by other programs, in alternating rounds.

    bench/generation.py MODEL_FOLDER [--skein build/skein] [--tokens 256] [--rounds 5] [--threads 2]
                        [--peers mistralrs,ctranslate2,xllamacpp] [--dtypes float32,bfloat16]

MODEL_FOLDER is a Hugging Face folder (`skein checkpoint export`). Needs torch and transformers from PyPI, and each
peer that --peers names; xllamacpp, which is llama.cpp, also needs gguf. A peer that is not installed, or that
refuses the model, is one line of the output.

What is computed  skein computes in the dtype that the folder stores. The others run once in each of --dtypes, of
                  the stored weights cast to it. transformers and mistralrs read the folder itself. ctranslate2's own
                  converter, and write_gguf for llama.cpp, write copies into a temporary folder. Its vocabulary for
                  llama.cpp is made up, since that side gets token ids and only its speed and its ids count
Times             of the new tokens after the first: the difference between a run with all of them and a run with
                  one. skein is a program that is started for each; the others stay loaded, each in a process of its
                  own, and are warm. All of them use the CPU, and no token ends the text
Cores             processor seconds of that difference per second: --threads, if a side obeys it
Agreement         how many of the first 32 tokens are those of transformers in the same dtype. Sums in another order
                  can change a token whose logits are close, above all in bfloat16

Prints the rates of each round, then medians.
"""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import json
import math
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from generation_sides import AGREEMENT_TOKENS, PROMPT, SIDES, Job

PEERS = [name for name in SIDES if name != "transformers"]
SHORT = {"float32": "f32", "bfloat16": "bf16"}


def serve(connection, log, name, job):
    """A side's own process: loads it, then answers method calls until the other end is closed."""
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        side = SIDES[name](job)
        connection.send((side.set, None))
        while True:
            method, tokens = connection.recv()
            wall, cpu = time.perf_counter(), time.process_time()
            result = getattr(side, method)(tokens)
            connection.send(((result, time.perf_counter() - wall, time.process_time() - cpu), None))
    except EOFError:
        return
    except BaseException as error:  # Rust's panics are none of Exception
        lines = str(error).strip().splitlines() or [""]  # below the first one may be a backtrace
        connection.send((None, f"{type(error).__name__}: {lines[0]}"))


class Refused(Exception):
    """Why a side cannot be measured, in one line."""


class Side:
    """A Python library in a process of its own, so that its threads, its memory and its end are its own."""

    def __init__(self, name, job):
        self.title = f"{name} {SHORT[job.dtype]}"
        self.name, self.dtype = name, job.dtype
        try:
            self.version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            raise Refused("not installed") from None
        self.log = os.path.join(job.scratch, "log")
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.log, name, job), daemon=True)
        self.process.start()
        other.close()
        self.set = self.answer()

    def answer(self):
        if not self.connection.poll(1800):
            raise Refused("no answer for 30 minutes")
        try:
            result, error = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            with open(self.log, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file if line.strip()] or ["no output"]
            raise Refused(f"its process ended with {self.process.exitcode}: {lines[-1]}") from None
        if error:
            raise Refused(error[:300])
        return result

    def call(self, method, tokens):
        with contextlib.suppress(OSError):  # a process that ended: answer() has the reason
            self.connection.send((method, tokens))
        return self.answer()

    def run(self, tokens):
        """What it generated, seconds, and processor seconds."""
        return self.call("generate", tokens)

    def close(self):
        self.connection.close()
        self.process.join(10)
        if self.process.is_alive():
            self.process.kill()


class Skein:
    def __init__(self, program, job):
        self.title, self.dtype = f"skein {SHORT[job.dtype]}", job.dtype
        self.set = f"--threads {job.threads}"
        self.command = [program, "generate", "--model", job.model, "--prompt", PROMPT, "--temperature", "0",
                        "--threads", str(job.threads), "--max-tokens"]

    def run(self, tokens):
        wall, cpu = time.perf_counter(), children_seconds()
        done = subprocess.run(self.command + [str(tokens)], capture_output=True)
        seconds = time.perf_counter() - wall, children_seconds() - cpu
        if done.returncode:
            sys.exit(f"{self.command[0]}: {done.stderr.decode('utf-8', errors='replace').strip()}")
        text = done.stdout.decode("utf-8", errors="replace").removeprefix(PROMPT).removesuffix("\n")
        return text, *seconds


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        found = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if ":" in line}
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def stored_dtype(job):
    """As skein reads it, which computes weights of float16 in float32."""
    config = job.config()
    name = config.get("dtype") or config.get("torch_dtype") or "float32"
    return "bfloat16" if name == "bfloat16" else "float32"


def endless_copy(model, folder):
    """Links to the model's files, and a configuration without an end of text: skein has no option to ignore it.

    mistralrs reads rope_theta only where transformers 4 wrote it, so it is there too."""
    os.mkdir(folder)
    for name in os.listdir(model):
        path, copy = os.path.join(os.path.abspath(model), name), os.path.join(folder, name)
        if name not in ("config.json", "generation_config.json"):
            os.symlink(path, copy)
            continue
        with open(path, encoding="utf-8") as file:
            config = json.load(file) | {"eos_token_id": None}
        theta = (config.get("rope_parameters") or {}).get("rope_theta")
        if theta is not None:
            config.setdefault("rope_theta", theta)
        with open(copy, "w", encoding="utf-8") as file:
            json.dump(config, file)
    return folder


def agreement(output, reference):
    """How many of the first tokens are the reference's. A text counts as far as whole tokens of it agree."""
    _, ids, texts = reference
    limit = len(texts) - 1
    if isinstance(output, str):
        starts = [text.rstrip("\ufffd").lstrip() for text in texts]
        return max(count for count in range(limit + 1) if output.lstrip().startswith(starts[count]))
    same = [ours == theirs for ours, theirs in zip(output[:limit], ids)]
    return same.index(False) if False in same else len(same)


def start(name, job, scratch, stack):
    """The side, which `stack` closes, or None and a printed line."""
    job = dataclasses.replace(job, scratch=tempfile.mkdtemp(dir=scratch))
    try:
        side = Side(name, job)
        stack.callback(side.close)
        side.run(8)  # warms it up
    except Refused as refused:
        print(f"{name} {SHORT[job.dtype]}: not measured: {refused}", flush=True)
        return None
    print(f"{side.title}: version {side.version}; {side.set}", flush=True)
    return side


def start_all(arguments, scratch, stack):
    """All sides that run, and the references by dtype."""
    model = endless_copy(arguments.model, os.path.join(scratch, "model"))
    job = Job(model, scratch="", dtype="", threads=arguments.threads, tokens=arguments.tokens)
    stored = job.dtype = stored_dtype(job)
    sides, references = [Skein(arguments.skein, job)], {}
    print(f"{sides[0].title}: {sides[0].set}")
    for dtype in [stored] + [dtype for dtype in arguments.dtypes if dtype != stored]:
        rival = start("transformers", dataclasses.replace(job, dtype=dtype), scratch, stack)
        if rival is None:
            continue
        sides.append(rival)
        references[dtype] = rival.call("reference", arguments.tokens)[0]
    if not references:
        sys.exit("transformers does not run: expected it as the reference")
    generated = {token for _, ids, _ in references.values() for token in ids}
    job.prompt = next(iter(references.values()))[0]
    longest = job.config()["max_position_embeddings"]
    if len(job.prompt) + arguments.tokens > longest:
        sys.exit(f"--tokens {arguments.tokens}: expected at most {longest - len(job.prompt)}, since the model is meant "
                 f"for {longest} tokens and the prompt has {len(job.prompt)}")
    job.unused = max(set(range(job.config()["vocab_size"])) - generated - set(job.prompt))
    for name in arguments.peers:
        for dtype in arguments.dtypes:
            sides.append(start(name, dataclasses.replace(job, dtype=dtype), scratch, stack))
    return [side for side in sides if side is not None], references


def measure_round(sides, tokens, rows):
    """Adds seconds and processor seconds of the tokens after the first. Leaves out a side that fails."""
    for side in sides:
        time.sleep(0.3)  # OpenMP's threads of the side before spin for 0.2 s
        try:
            (_, *longer), (_, *shorter) = side.run(tokens), side.run(1)
        except Refused as refused:
            print(f"{side.title}: left out: {refused}", flush=True)
            rows.pop(side.title)
            continue
        rows[side.title].append([longer[0] - shorter[0], longer[1] - shorter[1]])
        rate, cores = rate_of(rows[side.title][-1:], tokens)
        print(f"round {len(rows[side.title])} {side.title:>18} {rate:9.1f} tokens/s {cores:5.2f} cores", flush=True)
    return [side for side in sides if side.title in rows]


def rate_of(row, tokens):
    """By the medians of the row. Not a number if starting varied by more than the tokens took."""
    wall, cpu = (statistics.median(column) for column in zip(*row))
    return ((tokens - 1) / wall, cpu / wall) if wall > 0 else (math.nan, math.nan)


def compare_tokens(side, references, tokens):
    """How many of the side's first tokens are those of transformers in the same dtype, and in float32."""
    try:
        output = side.run(tokens)[0]
    except Refused:
        return ["-", "-"]  # the first round says why
    return [agreement(output, references[dtype]) if dtype in references else "-" for dtype in (side.dtype, "float32")]


def print_medians(rows, agreed, arguments):
    print(f"medians; and of the first {min(arguments.tokens, AGREEMENT_TOKENS)} tokens, how many are those of "
          "transformers in the same dtype, and in f32")
    print(f"{'':>18} {'tokens/s':>10} {'cores':>6} {'skein is':>9} {'agree':>6} {'in f32':>6}")
    rates = {title: rate_of(row, arguments.tokens) for title, row in rows.items()}
    ours = next(iter(rates.values()))[0]
    for title, (rate, cores) in rates.items():
        same, single = agreed[title]
        print(f"{title:>18} {rate:10.1f} {cores:6.2f} {ours / rate:8.2f}x {same:>6} {single:>6}")


def names_of(choices):
    def parse(text):
        names = [name for name in text.split(",") if name]
        wrong = [name for name in names if name not in choices]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]}: expected names of {', '.join(choices)}")
        return names
    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--skein", default="build/skein")
    parser.add_argument("--tokens", type=int, default=256, help="new ones, 256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", type=names_of(PEERS), default=[], help=f"of {','.join(PEERS)}; none")
    parser.add_argument("--dtypes", type=names_of(("float32", "bfloat16")), default=["float32", "bfloat16"],
                        help="of all but skein; float32,bfloat16. transformers also runs in the stored dtype")
    arguments = parser.parse_args()
    if arguments.tokens < 2:
        parser.error(f"--tokens {arguments.tokens}: expected at least 2, since the first one is not timed")
    return arguments


def main():
    arguments = parse_arguments()
    # Read by the libraries of the sides as these are loaded. Without a GPU in sight all of them use the CPU.
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "CANDLE_NUM_THREADS")
    os.environ.update({name: str(arguments.threads) for name in names}, CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1")
    print(cpu_name())
    print(f"{arguments.tokens} new tokens; set for all: {', '.join(names)} {arguments.threads}, no GPU", flush=True)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="generation-"))
        sides, references = start_all(arguments, scratch, stack)
        count = min(arguments.tokens, AGREEMENT_TOKENS)
        agreed = {side.title: compare_tokens(side, references, count) for side in sides}
        rows = {side.title: [] for side in sides}
        for _ in range(arguments.rounds):
            sides = measure_round(sides, arguments.tokens, rows)
            sides = sides[1:] + sides[:1]
    print_medians(rows, agreed, arguments)


if __name__ == "__main__":
    main()
