#!/usr/bin/env python3
"""Compares byte-level BPE that Skein trains with what `tokenizers` learns from the same text.

    scripts/judge/train_merges.py FILE… [--vocab-size 5000 …] [--skein build/skein]

Needs the PyPI packages tokenizers and pyarrow. The FILEs are documents. For each pattern (GPT-2,
Llama 3, Qwen 2) and size of the vocabulary: the vocabulary with its ids, and the merges in their
order. Prints how long both take, on the first core. Exit code 1 where anything differs.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import pyarrow as pa

RIVAL = """
import json, sys, time
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
documents, name, regex, size, out = json.load(open(sys.argv[1])), *sys.argv[2:]
tokenizer = Tokenizer(models.BPE())
if name == "gpt2":
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
else:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
if name == "qwen2":
    tokenizer.normalizer = normalizers.NFC()
begin = time.perf_counter()
tokenizer.train_from_iterator(documents, trainers.BpeTrainer(
    vocab_size=int(size), min_frequency=2, show_progress=False, special_tokens=["<|endoftext|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save(out)
print(time.perf_counter() - begin)
"""


def on_first_core(command):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    done = subprocess.run(["taskset", "-c", "0", *command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--vocab-size", type=int, nargs="+", default=[400, 5000, 30000])
    parser.add_argument("--skein", default="build/skein")
    options = parser.parse_args()
    documents = [open(path, encoding="utf-8", errors="replace", newline="").read(1 << 19) for path in options.files]
    documents = [text for text in documents if text]
    print(f"{len(documents)} documents, {sum(len(text.encode()) for text in documents) / 1e6:.1f} MB")
    num_different = 0
    with tempfile.TemporaryDirectory() as folder:
        json.dump(documents, open(folder + "/documents.json", "w"))
        table = pa.table({"text": pa.array(documents, pa.large_string())})
        with pa.OSFile(folder + "/corpus.arrow", "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        for name in ("gpt2", "llama3", "qwen2"):
            for size in options.vocab_size:
                ours = f"{folder}/{name}-{size}"
                seconds = os.times().elapsed
                on_first_core([options.skein, "data", "tokenizer", "--kind", "byte-level", "--pattern", name, "--threads", "1",
                               "--vocab-size", str(size), "--out", ours, folder + "/corpus.arrow"])
                seconds = os.times().elapsed - seconds
                found = json.load(open(ours + "/tokenizer.json"))
                splits = found["pre_tokenizer"].get("pretokenizers", [{}])[0]
                regex = splits.get("pattern", {}).get("Regex", "")
                theirs = float(on_first_core([sys.executable, "-c", RIVAL, folder + "/documents.json", name, regex, str(size),
                                              ours + ".json"]))
                expected = json.load(open(ours + ".json"))
                same = all(found["model"][key] == expected["model"][key] for key in ("vocab", "merges"))
                num_different += not same
                print(f"{name:7} {size:6}: {'identical' if same else 'DIFFERENT'}; skein {seconds:.2f} s, tokenizers {theirs:.2f} s")
                if not same:
                    pairs = list(zip(found["model"]["merges"], expected["model"]["merges"]))
                    i = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
                    print(f"  merge {i}: skein {pairs[i:i + 3]}")
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
