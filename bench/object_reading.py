#!/usr/bin/env python3
"""How long the first batch takes, and how fast lanes read, from a store that speaks S3's protocol.

    bench/object_reading.py SKEIN CORPUS TOKENIZER [--rounds N] [--latency MS] [--objects N] [--steps N]

CORPUS, a file, is put into moto N times, behind a proxy that lets each request wait for --latency ms. `skein data
sample --step 1` opens the objects, finds the first blocks of 8 lanes, tokenizes and packs them; at a later step all
steps before it were read. Beside it the same from files. Wall-clock seconds, medians of rounds; moto, a program in
Python on the same cores, is the slow part. Needs what scripts/setup.sh installs.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "objects"))
import moto_store  # noqa: E402
from faulty_proxy import FaultyProxy  # noqa: E402

LANES, TRAINING = 8, 13_500


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("skein")
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=30)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store = moto_store.Store(folder)
        (folder / "files").mkdir()
        for i in range(options.objects):
            part = f"part-{i:05}-of-{options.objects:05}.arrow"
            os.link(options.corpus.resolve(), folder / "files" / part)
            store.client.upload_file(str(options.corpus), "texts", f"corpus/{part}")
        proxy = FaultyProxy(store.port, on_request=lambda method, path: time.sleep(options.latency / 1e3))
        config = folder / "config.toml"
        config.write_text("[model]\nhidden_size = 64\nintermediate_size = 128\nnum_hidden_layers = 2\n"
                          f'num_attention_heads = 4\n[data]\ntokenizer = "{options.tokenizer.resolve()}"\n'
                          f"sequence_length = {options.length}\n[batch]\nglobal_sequences = {LANES}\n")

        def sample(corpus, step):
            begin, requests = time.monotonic(), proxy.num_requests
            subprocess.run([options.skein, "data", "sample", str(config), "--json", "--step", str(step), "--set",
                            f"data.train={corpus}"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "AWS_ENDPOINT_URL": proxy.url})
            return time.monotonic() - begin, proxy.num_requests - requests

        found = {}
        for _ in range(options.rounds):
            for place, corpus in (("files", folder / "files"), ("the store", "s3://texts/corpus/")):
                first, later = sample(corpus, 1), sample(corpus, 1 + options.steps)
                found.setdefault(place, []).append((first[0], later[0] - first[0], first[1], later[1] - first[1]))
        store.stop()
    size = options.corpus.stat().st_size / 1e6
    print(f"{options.objects} objects of {size:.0f} MB, {options.latency:g} ms a request, medians of {options.rounds}")
    for place, rounds in found.items():
        first, rest, asked, more = (statistics.median(column) for column in zip(*rounds))
        rate = LANES * options.steps * options.length / rest
        print(f"  {place:<10} first batch {first:.2f} s ({asked:.0f} requests), then {rate / 1e6:.2f} M tokens/s "
              f"({more:.0f} requests), {rate / TRAINING:.0f} times what an H200 takes of a 7B model")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
