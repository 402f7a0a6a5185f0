#!/usr/bin/env python3
"""Loads `skein serve` with good and hostile clients at once, and checks its answers, its memory and its open files.

    bench/serve_soak.py SKEIN MODEL [--minutes 10] [--seed 1] [--environment ASAN_OPTIONS=quarantine_size_mb=16]

MODEL is a run, a checkpoint or a Hugging Face folder. If its tokenizer has a chat template, the script asks chats too.
The server listens on 127.0.0.1, with small limits. First the script asks every good question once, alone, and records
the answers. Then it asks them again, beside clients that break the protocol, send nonsense, are slow, leave, or are
1,000 at once; and it reloads the model every minute.

Exit code 1, with one line a reason: a good answer differs from the recorded answer; a hostile client gets an answer
that it should not get; the server dies, or a sanitizer reports; the median of resident memory in the last third of the
time is above that of the middle third by more than 5 % and 8 MB; more files are open at the end than before the load.

Memory reaches its usual size after 3 minutes: judge it by a run of 10. glibc's allocator lets it vary by 30 MB, and by
less with --environment MALLOC_MMAP_THRESHOLD_=131072 --environment MALLOC_ARENA_MAX=2. AddressSanitizer keeps up to
256 MB of freed memory: set a small quarantine, as above.
"""
import argparse
import asyncio
import collections
import contextlib
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from random import Random

import soak_hostile as hostile
from soak_good import NAME, PROMPTS, difference, good, metrics_of, questions_of, reload
from soak_hostile import refused
from soak_http import GONE, Connection, error_message, is_crowded, request, short

LIMITS = ["--max-length", "256", "--max-texts", "8", "--queue", "16", "--cache-gb", "0.004", "--grace", "20"]
PATIENCE = 120  # seconds for an answer, or for the server's end; its own times are 10 to 60
GOOD_PATIENCE = 300  # for a round of a good client, whose texts may wait several times
MOST_ROUNDS = 10 ** 6  # of a client
MOST_REASONS = 50
SAMPLE_SECONDS, TELL_SECONDS, RELOAD_SECONDS = 2, 30, 60
COUNTS = ("requests_answered", "requests_queue_full", "requests_cancelled", "completion_tokens", "connections",
          "connections_refused")
SANITIZERS = ("ERROR: AddressSanitizer", "runtime error:", "LeakSanitizer", "WARNING: ThreadSanitizer")

# Kind, clients at once, seconds between rounds of a client, what a round does. Good kinds have questions of that name.
GOOD = [("completion", 3, 0.05, good), ("completion stream", 3, 0.05, good), ("list", 2, 0.1, good),
        ("list stream", 1, 0.1, good), ("score", 1, 0.1, good), ("score stream", 1, 0.1, good), ("chat", 1, 0.1, good),
        ("chat stream", 1, 0.1, good), ("tokens", 1, 0.1, good), ("page", 1, 0.2, good),
        ("reload", 1, RELOAD_SECONDS, reload)]
HOSTILE = [("malformed", 2, 0.2, refused(hostile.malformed)), ("wrong type", 2, 0.1, refused(hostile.wrong_type)),
           ("unknown field", 1, 0.2, refused(hostile.unknown_field)), ("too long", 1, 1, refused(hostile.too_long)),
           ("foreign id", 1, 0.2, refused(hostile.foreign_id)), ("wrong page", 1, 0.2, refused(hostile.wrong_page)),
           ("wrong protocol", 2, 0.2, refused(hostile.wrong_protocol, may_close=True)),
           ("pipelined", 2, 0.2, hostile.pipelined), ("random bytes", 2, 0.2, hostile.random_bytes),
           ("mutated", 2, 0.2, hostile.mutated), ("large head", 1, 0.5, hostile.large_head),
           ("large body", 1, 2, hostile.large_body), ("endless body", 1, 2, hostile.endless_body),
           ("slow head", 2, 1, hostile.slow_head), ("slow body", 2, 1, hostile.slow_body),
           ("slow reader", 2, 5, hostile.slow_reader), ("aborted", 3, 0.3, hostile.aborted),
           ("silent", 4, 1, hostile.silent), ("flood", 1, 10, hostile.flood)]

Sample = collections.namedtuple("Sample", "time rss files")


class Soak:
    """What all clients share: the server, the questions, the counts, and the reasons to fail."""

    def __init__(self, server, port):
        self.server, self.port = server, port
        self.counts = collections.defaultdict(collections.Counter)  # by kind, of each outcome
        self.failures = collections.Counter()  # by reason
        self.samples = []
        self.begin = self.end = 0.0
        self.questions, self.vocab_size, self.max_length = {}, 0, 0

    def connect(self, **options):
        return Connection(self.port, **options)

    def is_dead(self):
        return self.server.poll() is not None

    def is_over(self):
        return time.monotonic() >= self.end or self.is_dead()

    def note(self, kind, outcome):
        self.counts[kind][str(outcome)] += 1

    def fail(self, reason):
        if self.is_dead():  # all that follows has this reason
            reason = f"the server died with exit code {self.server.returncode}"
        reason = " ".join(reason.split())
        if reason in self.failures or len(self.failures) < MOST_REASONS:
            self.failures[reason] += 1

    def judge(self, kind, answer, statuses, sent):
        """Counts the answer to a hostile request, which must have one of `statuses`."""
        self.note(kind, answer.status)
        if is_crowded(answer):
            return
        if answer.status not in statuses:
            wanted = " or ".join(map(str, statuses))
            self.fail(f"{kind}: {short(sent)} got {answer.status}, expected {wanted}: {short(answer.body)}")
        elif answer.status >= 400 and not error_message(answer):
            self.fail(f"{kind}: {short(sent)} got {answer.status} in another form: {short(answer.body)}")

    def sample(self):
        with open(f"/proc/{self.server.pid}/status") as status:
            rss = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
        return Sample(time.monotonic(), rss, len(os.listdir(f"/proc/{self.server.pid}/fd")))


async def record(soak):
    """Asks every question alone."""
    async with soak.connect() as connection:
        async def content(method, path, body=None):
            return json.loads((await connection.ask(request(method, path, body))).body)
        info = await content("GET", "/tokenizer_info")
        soak.vocab_size, soak.max_length = info["vocab_size"], info["max_model_len"]
        ids = [(await content("POST", "/tokenize", {"prompt": prompt}))["tokens"] for prompt in PROMPTS[:2]]
        soak.questions = questions_of(ids, info["chat_template"] is not None)
        for kind, questions in soak.questions.items():
            for i, question in enumerate(questions):
                answer = await connection.ask(question.bytes, is_head=question.is_head)
                if answer.status != 200:
                    raise SystemExit(f"serve_soak: {question} got {answer.status}: {short(answer.body)}")
                question.expected = question.meaning(answer)
                if kind.endswith(" stream"):
                    whole = soak.questions[kind.removesuffix(" stream")][i].expected
                    if question.expected != whole:
                        soak.fail(f"{kind}: alone, {question} differs: {difference(whole, question.expected)}")


async def client(soak, kind, pause, act, random):
    patience = GOOD_PATIENCE if act in (good, reload) else PATIENCE
    await asyncio.sleep(pause * random.random())
    for _ in range(MOST_ROUNDS):
        if soak.is_over():
            return
        try:
            async with asyncio.timeout(patience):
                await act(soak, kind, random)
        except TimeoutError:
            soak.fail(f"{kind}: no answer within {patience} s")
        except GONE as error:
            soak.fail(f"{kind}: closed without an answer: {type(error).__name__}")
        except Exception as error:
            soak.fail(f"{kind}: {type(error).__name__}: {error}")
        await asyncio.sleep(min(pause * random.uniform(0.5, 1.5), max(0.0, soak.end - time.monotonic())))


async def load(soak, minutes, seed):
    soak.begin = time.monotonic()
    soak.end = soak.begin + 60 * minutes
    def clients(kinds):
        return [asyncio.create_task(client(soak, kind, pause, act, Random(f"{seed} {kind} {i}")))
                for kind, number, pause, act in kinds if act is not good or kind in soak.questions
                for i in range(number)]
    good_ones, hostile_ones = clients(GOOD), clients(HOSTILE)
    await watch(soak)
    await asyncio.gather(*good_ones)
    for task in hostile_ones:
        task.cancel()
    await asyncio.gather(*hostile_ones, return_exceptions=True)


async def watch(soak):
    next_line = soak.begin + TELL_SECONDS
    while not soak.is_over():
        soak.samples.append(soak.sample())
        if soak.samples[-1].time >= next_line:
            next_line += TELL_SECONDS
            tell(soak, soak.samples[-1])
        await asyncio.sleep(SAMPLE_SECONDS)


async def calm(soak, files):
    """Waits until the server has nothing under way, and returns its metrics."""
    async with soak.connect() as connection:
        for _ in range(2 * PATIENCE):
            metrics = metrics_of((await connection.ask(request("GET", "/metrics"))).body.decode())
            state = {name: metrics[name] for name in ("texts_running", "texts_waiting", "connections_open")}
            if list(state.values()) == [0, 0, 1]:
                break
            await asyncio.sleep(0.5)
        else:
            soak.fail(f"the server is not idle {PATIENCE} s after the load: {state}")
    for _ in range(20):
        if soak.sample().files <= files:
            break
        await asyncio.sleep(0.5)
    return metrics


def judge_resources(soak, first, last, metrics):
    seconds = soak.samples[-1].time - soak.begin
    def median_of_third(third):
        return statistics.median(sample.rss for sample in soak.samples
                                 if third <= 3 * (sample.time - soak.begin) / seconds <= third + 1)
    middle, end = median_of_third(1), median_of_third(2)
    if end > 1.05 * middle and end > middle + 8e6:
        soak.fail(f"memory grows: median {megabytes(middle)} in the middle third, {megabytes(end)} in the last third")
    if last.files > first.files:
        soak.fail(f"{last.files} files are open at the end, and {first.files} were before the load")
    if number := metrics.get('responses_total{code="500"}'):
        soak.fail(f"/metrics counts {number} answers with status 500")


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


def listed(counts):
    return ", ".join(f"{name} × {counts[name]}" for name in sorted(counts))


def tell(soak, sample):
    kinds = ", ".join(f"{kind} {soak.counts[kind].total()}" for kind, *_ in GOOD + HOSTILE)
    print(f"{sample.time - soak.begin:5.0f} s  {megabytes(sample.rss)}, {sample.files} files, {len(soak.failures)} "
          f"reasons to fail | {listed(sum(soak.counts.values(), collections.Counter()))} | {kinds}", flush=True)


def summarize(soak, first, last, metrics):
    print(f"\n{'kind':18} {'requests':>8}  outcomes")
    for kind, *_ in GOOD + HOSTILE:
        print(f"{kind:18} {soak.counts[kind].total():8}  {listed(soak.counts[kind])}")
    samples = soak.samples
    moments = (first, samples[len(samples) // 3], samples[2 * len(samples) // 3], last)
    print("resident memory    start {}, a third {}, two thirds {}, end {}".format(*(megabytes(m.rss) for m in moments)))
    print("the server's counts", ", ".join(f"{name} {metrics[f'{name}_total']}" for name in COUNTS))
    print(f"open files         start {first.files}, most {max(s.files for s in samples)}, end {last.files}")


async def soak_server(soak, args):
    first = soak.sample()
    await record(soak)
    print(f"{sum(map(len, soak.questions.values()))} answers are recorded; {args.minutes:g} min of load", flush=True)
    await load(soak, args.minutes, args.seed)
    if not soak.is_dead():
        metrics = await calm(soak, first.files)
        last = soak.sample()
        judge_resources(soak, first, last, metrics)
        summarize(soak, first, last, metrics)
        soak.server.send_signal(signal.SIGTERM)


def start(args, log):
    environment = {**os.environ, **dict(pair.split("=", 1) for pair in args.environment)}
    environment.pop("SKEIN_API_KEY", None)
    with open(log, "w") as stderr:
        server = subprocess.Popen([args.skein, "serve", args.model, "--listen", "127.0.0.1:0", "--served-model-name",
                                   NAME, *LIMITS], stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
    for _ in range(20 * PATIENCE):
        if found := re.search(r"serving on http://127\.0\.0\.1:(\d+)/v1\n", open(log).read()):
            return server, int(found[1])
        if server.poll() is not None:
            break
        time.sleep(0.05)
    server.kill()
    raise SystemExit(f"serve_soak: the server does not start: {short(open(log).read(), 1000)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE", help="of the server")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("serve_soak: ended by SIGTERM"))  # ends the server, too
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "stderr")
        server, port = start(args, log)
        soak = Soak(server, port)
        try:
            asyncio.run(soak_server(soak, args))
            code = server.wait(PATIENCE)
            if code != 0:
                soak.failures[f"the server ended with exit code {code}, expected 0 after SIGTERM"] += 1
        except GONE as error:  # before or after the load
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(5)
            soak.fail(f"the only connection was closed: {type(error).__name__}")
        except subprocess.TimeoutExpired:
            soak.failures[f"the server does not end within {PATIENCE} s of SIGTERM"] += 1
        finally:
            server.kill()
            server.wait()
        lines = open(log, errors="replace").read().splitlines()
    for line in lines:
        if any(word in line for word in SANITIZERS):
            soak.failures[f"a sanitizer reports: {line}"] += 1
    complaints = [line for line in lines if re.match("[EW] ", line)]
    print(f"the server's log   {len(complaints)} errors and warnings", *complaints[:10], sep="\n  ")
    for reason, number in soak.failures.items():
        print(f"FAILED: {reason}" + f" ({number} times)" * (number > 1))
    print("serve_soak:", "failed" if soak.failures else "all well")
    sys.exit(bool(soak.failures))


if __name__ == "__main__":
    main()
