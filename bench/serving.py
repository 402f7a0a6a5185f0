#!/usr/bin/env python3
"""What `skein serve` makes of many requests at once: new tokens a second of 1 stream and of many, in alternating runs.

    bench/serving.py MODEL [--skein build/skein] [--streams 1,8,64] [--tokens 128] [--prompt-tokens 64]
                     [--rounds 3] [--precision bf16] [--threads 2]

MODEL is a run or a Hugging Face folder. Each stream is a request of its own with a prompt of its own (random token
ids), answered as a stream of events; tokens that would end a text do not. The time is that from the first new token of
the last stream that begins to the last of the first that ends, so that reading prompts does not count. Prints each
round, the medians, and the times of one stream.
"""

import argparse
import contextlib
import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

from generation import cpu_name


@contextlib.contextmanager
def serving(arguments):
    command = [arguments.skein, "serve", arguments.model, "--listen", "127.0.0.1:0", "--precision",
               arguments.precision, "--threads", str(arguments.threads), "--cache-gb", "1000"]  # room for all
    if arguments.max_length:
        command += ["--max-length", str(arguments.max_length)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            print(line.rstrip())
            if line.startswith("serving on "):
                yield urllib.parse.urlsplit(line.split()[-1]).netloc
                break
    finally:
        server.terminate()
        server.wait(60)


def get(address, path):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def stream(address, prompt, tokens, times):
    """Puts the times at which new tokens came into `times`."""
    connection = http.client.HTTPConnection(address, timeout=600)
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body))
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(response.read())
    for line in response:
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())


def rate(address, draw, streams, arguments, vocabulary):
    all_times = [[] for _ in range(streams)]
    threads = []
    for times in all_times:
        prompt = [draw.randrange(vocabulary) for _ in range(arguments.prompt_tokens)]
        threads.append(threading.Thread(target=stream, args=(address, prompt, arguments.tokens, times)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begin, end = max(times[0] for times in all_times), min(times[-1] for times in all_times)
    if end <= begin:
        sys.exit(f"serving: the first of {streams} streams ended before the last began, or their tokens have too little "
                 "text: give more --tokens")
    made = sum(sum(begin < at <= end for at in times) for times in all_times)
    expected = streams * arguments.tokens
    # An event may hold no new text: half a character.
    share = sum(len(times) for times in all_times) / expected
    return made / share / (end - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--skein", default="build/skein")
    parser.add_argument("--streams", default="1,64")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-length", type=int, default=512)
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.streams.split(",")]
    print(cpu_name())
    draw = random.Random(1)
    rates = {count: [] for count in counts}
    with serving(arguments) as address:
        vocabulary = get(address, "/tokenizer_info").get("vocab_size", 256)
        rate(address, draw, counts[-1], arguments, vocabulary)  # warm
        for _ in range(arguments.rounds):
            for count in counts:
                rates[count].append(rate(address, draw, count, arguments, vocabulary))
                print(f"{count:>4} at once {rates[count][-1]:9.1f} tokens/s", flush=True)
    medians = {count: statistics.median(values) for count, values in rates.items()}
    one = medians[counts[0]]
    for count in counts:
        print(f"median of {count:>3} at once: {medians[count]:9.1f} tokens/s, {medians[count] / one:.2f} times {counts[0]}")


if __name__ == "__main__":
    main()
