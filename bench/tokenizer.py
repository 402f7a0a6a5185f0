#!/usr/bin/env python3
"""How fast one core encodes: Skein beside gigatoken, tokenizers and sentencepiece.

    bench/tokenizer.py TOKENIZER TEXT [--rounds 3] [--skein build/tokenizer_bench]

TOKENIZER is a folder with tokenizer.json or tokenizer.model, TEXT a file of UTF-8. Every program
gets the text in documents of 256 KiB, in a process of its own, on the first core, in alternation;
`first` is its first pass over the text and `again` its second, when it has seen all words. Medians
of rounds in MiB/s. Programs that are not installed, or do not read such a tokenizer, are passed over
by name; tokenizers and sentencepiece get the first 4 MiB.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

RIVAL = """
import json, sys, time
name, folder, path, most = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
text = open(path, encoding="utf-8", errors="replace", newline="").read(most)
documents = [text[i:i + (256 << 10)] for i in range(0, len(text), 256 << 10)]
if name == "gigatoken":
    import gigatoken, os
    model = folder + "/tokenizer.json"
    tokenizer = gigatoken.Tokenizer(model) if os.path.exists(model) else (
        gigatoken.Tokenizer.from_sentencepiece(folder + "/tokenizer.model"))
    encode = tokenizer.encode
elif name == "tokenizers":
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    encode = lambda document: tokenizer.encode(document, add_special_tokens=False).ids
else:
    import sentencepiece
    encode = sentencepiece.SentencePieceProcessor(model_file=folder + "/tokenizer.model").encode
size = len(text.encode())
speeds, tokens = [], 0
for _ in range(2):
    begin = time.perf_counter()
    tokens = sum(len(encode(document)) for document in documents)
    speeds.append(size / (time.perf_counter() - begin) / 2**20)
print(json.dumps({"bytes": size, "tokens": tokens, "mib_per_s": speeds}))
"""


def run(command):
    environment = dict(os.environ, RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    done = subprocess.run(["taskset", "-c", "0", *command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["failed"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skein", default="build/tokenizer_bench")
    options = parser.parse_args()
    is_json = not os.path.exists(f"{options.tokenizer}/tokenizer.model")
    rivals = ["gigatoken", "tokenizers" if is_json else "sentencepiece"]
    commands = {"skein": [options.skein, options.tokenizer, options.text, "--rounds", "2"]}
    for name in rivals:
        most = -1 if name == "gigatoken" else 4 << 20
        commands[name] = [sys.executable, "-c", RIVAL, name, options.tokenizer, options.text, str(most)]
    results = {}
    for _ in range(options.rounds):
        for name in list(commands):
            result, why = run(commands[name])
            if result is None:
                print(f"{name}: passed over: {why}", file=sys.stderr)
                del commands[name]
            else:
                results.setdefault(name, []).append(result)
    print(f"{'':14} {'MB':>7} {'tokens':>11} {'first':>8} {'again':>8}  MiB/s")
    for name, all_of_it in results.items():
        first, again = (statistics.median(r["mib_per_s"][i] for r in all_of_it) for i in (0, 1))
        print(f"{name:14} {all_of_it[0]['bytes'] / 1e6:7.1f} {all_of_it[0]['tokens']:11} {first:8.1f} {again:8.1f}")


if __name__ == "__main__":
    main()
