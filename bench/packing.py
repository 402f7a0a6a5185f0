#!/usr/bin/env python3
"""How fast one core tokenizes and packs text as training goes.

    bench/packing.py SKEIN CORPUS TOKENIZER [--rounds N] [--length T]

`skein data sample --step N` reads the lanes of 8 rows from their beginning, on one thread; the time of
step 1 is taken off that of step 601. Seconds of the processor (user), so that a busy machine does not
count; medians of rounds. An H200 that trains a 7B model takes some 12,000 tokens a second.
"""
import argparse
import pathlib
import resource
import statistics
import subprocess
import tempfile

LANES, STEPS, TRAINING = 8, 600, 13_500


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("skein")
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "config.toml"
        config.write_text("[model]\nhidden_size = 64\nintermediate_size = 128\nnum_hidden_layers = 2\n"
                          f'num_attention_heads = 4\n[data]\ntrain = "{options.corpus.resolve()}"\n'
                          f'tokenizer = "{options.tokenizer.resolve()}"\nsequence_length = {options.length}\n'
                          f"[batch]\nglobal_sequences = {LANES}\n")
        sample = [options.skein, "data", "sample", str(config), "--json", "--step"]
        seconds = [user_seconds(sample + [str(1 + STEPS)]) - user_seconds(sample + ["1"])
                   for _ in range(options.rounds)]
    rate = LANES * STEPS * options.length / statistics.median(seconds)
    print(f"{rate / 1e6:.1f} M tokens a second of one core, {rate / TRAINING:.0f} times as many as an "
          f"H200 takes ({TRAINING:,})")


if __name__ == "__main__":
    main()
