#!/usr/bin/env python3
"""Cleaning: Skein's filters beside datatrove's, on the same made documents.

    bench/clean.py [--megabytes 40] [--their-megabytes 2] [--rounds 3] [--language-model FILE] [--bench build/clean_bench]
                   [--skein build/skein]

The documents are pages of sentences whose words have the frequencies of natural text (Zipf); most of
them pass every filter, which is the dearest case. Both judge by Gopher's repetition and quality, C4
and FineWeb in this order, on the first core in alternation, and must drop the same documents of the
part that datatrove gets (it is the same speed on all of it). Then the whole of `skein data clean`
with one thread, from JSON lines to the corpus. With a model of fastText, both tell languages, and
nothing else; then Skein asks it before the rules. Printed: medians of rounds in MB (10^6 bytes of
text) per second that the core spent on it, so that what else runs there is not counted. Needs the PyPI
packages datatrove==0.10.1, spacy, regex, orjson and xxhash==3.5.0, for languages
fasttext-numpy2-wheel and fasteners.
"""
import argparse
import collections
import json
import os
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile

RIVAL = """
import json, struct, sys, time
from datatrove.data import Document
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter, LanguageFilter)
if len(sys.argv) > 2:
    from fasttext.FastText import _FastText
    filters = [LanguageFilter(["en"])]
    filters[0].model._model = _FastText(sys.argv[2])
else:
    filters = [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(filter_no_terminal_punct=False),
               FineWebQualityFilter()]
data, at, documents = open(sys.argv[1], "rb").read(), 0, []
while at < len(data):
    size, = struct.unpack_from("<I", data, at)
    documents.append(Document(text=data[at + 4:at + 4 + size].decode(), id=""))
    at += 4 + size
for filter in filters:
    filter.filter(Document(text="Warm up.", id=""))
begin = time.process_time()
kept = sum(all(filter.filter(document) is True for filter in filters) for document in documents)
print(json.dumps({"seconds": time.process_time() - begin, "kept": kept, "documents": len(documents)}))
"""

# Words are made of these parts, so that a model of languages takes pages of them for English.
BEGINNINGS = "un re over under out dis mis fore inter non pre sub super counter up by with self half fire hand".split() + [""]
STEMS = """work light house water stand ground break walk stone friend read build write speak think play hand head time day
    place point turn hold keep draw mark land book side line field paper table window garden river winter summer question
    answer farm ship wind cloud snow forest market street bridge church school heart thought master father mother brother
    fire feather leather weather silver copper village journey letter color number power flower tower shoulder""".split()
ENDINGS = "ing ed s er ers ly ness less ful able ment ship hood y ish ward wise like".split() + [""]

COMMON = "the of and to a in that is was for with as it be on by at from this have not are or an but they which".split()


def page(rng, words, weights):
    def sentence():
        chosen = rng.choices(words, cum_weights=weights, k=max(4, int(rng.gauss(17, 6))))
        return " ".join(chosen).capitalize() + rng.choice([".", ".", ".", ".", "?", "!", ", indeed.", "."])
    return "\n".join(" ".join(sentence() for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(3, 30)))


def write_pages(path, megabytes):
    rng = random.Random(17)
    words = [a + b + c for a in BEGINNINGS for b in STEMS for c in ENDINGS]
    words.sort(key=lambda word: len(word) + rng.gauss(0, 3))  # frequent words are short
    words = COMMON + words
    total, weights = 0.0, []
    for i in range(len(words)):
        total += 1 / (i + 3)
        weights.append(total)
    num_bytes = 0
    with open(path, "wb") as out, open(path + ".jsonl", "w", encoding="utf-8") as lines:
        while num_bytes < megabytes * 1e6:
            text = page(rng, words, weights)
            data = text.encode()
            out.write(struct.pack("<I", len(data)) + data)
            lines.write(json.dumps({"text": text}) + "\n")
            num_bytes += len(data)
    return num_bytes


def on_first_core(command):
    """What the command prints, and the seconds that the core spent on it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["taskset", "-c", "0", *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--their-megabytes", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--language-model")
    parser.add_argument("--bench", default="build/clean_bench")
    parser.add_argument("--skein", default="build/skein")
    options = parser.parse_args()
    model = [options.language_model] if options.language_model else []
    asks = ["--language-model", *model] if model else []
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    with tempfile.TemporaryDirectory() as folder:
        all_bytes = write_pages(folder + "/all", options.megabytes)
        part_bytes = write_pages(folder + "/part", options.their_megabytes)
        first = "skein, languages" if model else "skein, rules"
        rates = collections.defaultdict(list)
        for _ in range(options.rounds):
            def judge(name, *asked):
                found = json.loads(on_first_core([options.bench, folder + "/all", *asked])[0])
                rates[name].append(all_bytes / found["seconds"][0] / 1e6)
            judge(first, *asks)
            theirs = json.loads(on_first_core([sys.executable, "-c", RIVAL, folder + "/part", *model])[0])
            rates[first.replace("skein", "datatrove")].append(part_bytes / theirs["seconds"] / 1e6)
            if model:
                judge("skein, rules")
                judge("skein, both", *asks, "--with-rules")
            _, seconds = on_first_core([options.skein, "data", "clean", "--threads", "1", "--overwrite", *asks, "--out",
                                        folder + "/out.arrow", folder + "/all.jsonl"])
            rates["skein data clean"].append(all_bytes / seconds / 1e6)
        ours = json.loads(on_first_core([options.bench, folder + "/part", *asks])[0])
    print(f"{cpu}; {all_bytes / 1e6:.0f} MB, {options.rounds} rounds")
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, median in medians.items():
        print(f"{name:20} {median:8.3f} MB/s   {medians[first] / median:8.1f} x")
    print(f"kept of {theirs['documents']} documents: skein {ours['kept']}, datatrove {theirs['kept']}")
    return 0 if ours["kept"] == theirs["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
