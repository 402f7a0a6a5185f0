#!/usr/bin/env python3
"""Makes text to ingest: .jsonl.zst files of documents as crawls have them, from a seed.

    bench/ingest_text.py FOLDER [--mb 1000] [--files 8] [--seed 1]

Words follow Zipf's law; one document in eight is not in Latin script; lengths are log-normal, 3 KB in
the middle. --mb counts the text, of all files together.
"""
import argparse
import json
import os
import random

import zstandard

SCRIPTS = ["abcdefghijklmnopqrstuvwxyz", "абвгдежзиклмнопрстуфхцчшыюя", "的一是在不了有和人这中大为上个国我以要他"]


def words(source, letters, count):
    return ["".join(source.choices(letters, k=source.randint(2, 11))) for _ in range(count)]


def document(source, vocabularies, weights):
    vocabulary = vocabularies[0 if source.random() < 7 / 8 else source.randint(1, 2)]
    drawn = source.choices(vocabulary, cum_weights=weights, k=max(5, int(source.lognormvariate(6, 1))))
    lines = [" ".join(drawn[i:i + 14]) for i in range(0, len(drawn), 14)]
    return ".\n".join(lines) + ' "end"'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    source = random.Random(options.seed)
    vocabularies = [words(source, letters, 20000) for letters in SCRIPTS]
    weights = [0.0]
    for rank in range(20000):
        weights.append(weights[-1] + 1 / (rank + 2))
    # Drawing words is slow: documents of a pool are repeated, each time with a beginning of its own.
    pool = [document(source, vocabularies, weights[1:]) for _ in range(4000)]
    wanted = options.mb * 1_000_000 // options.files
    for number in range(options.files):
        path = os.path.join(options.folder, f"part-{number:05}.jsonl.zst")
        with zstandard.open(path, "wb", cctx=zstandard.ZstdCompressor(level=3)) as out:
            written = index = 0
            while written < wanted:
                text = f"{number} {index} {source.random()}\n{source.choice(pool)}"
                line = json.dumps({"text": text, "id": index, "url": f"https://example.org/{index}",
                                   "meta": {"score": source.random()}}, ensure_ascii=index % 2 == 0)
                out.write(line.encode() + b"\n")
                written += len(text.encode())
                index += 1


if __name__ == "__main__":
    main()
