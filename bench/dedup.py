#!/usr/bin/env python3
"""Deduplication: Skein beside datatrove, on the same made documents.

    bench/dedup.py [--megabytes 12] [--rounds 3] [--alone] [--memory 256MiB] [--skein build/skein]

The documents are of random words with the frequencies of natural text (Zipf), and hold planted pairs
whose exact Jaccard similarity of 5-grams is computed here. Both get 5-grams, 14 bands of 8 rows and
64-bit n-gram hashes, and run all of their steps, from JSON lines to what is left, on the first core
in alternation; datatrove's imports are not counted. Printed: medians of rounds in MB (10^6 bytes of
text) per second of wall clock and of processor time, peak memory, recall by similarity beside what
14 bands of 8 rows promise, and how many of the removed documents were no planted ones; Skein is
also timed with two threads on two cores. Then whether its output is the same for any number of
threads, files and their order, and of machines (processes, of which one is killed and started
again). Needs the PyPI packages datatrove, spacy, tokenizers, xxhash 3.5, orjson and pyarrow; with --alone only pyarrow.
"""
import argparse
import bisect
import collections
import hashlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

SIMILARITIES = [0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]
NGRAM, BANDS, ROWS = 5, 14, 8
PIECE_BYTES = 33 << 20  # a file of so many is a piece by itself

RIVAL = """
import json, os, resource, sys, time
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter,
                                      MinhashDedupSignature)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.word_tokenizers import load_word_tokenizer
inputs, work = sys.argv[1], sys.argv[2]
config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8,
                       hash_config=HashConfig(precision=64, hash_fc="xxhash"))
load_word_tokenizer("eng").word_tokenize("warm up")
reader = lambda: JsonlReader(inputs, doc_progress=False)
steps = [
    (1, [reader(), MinhashDedupSignature(f"{work}/signatures", config=config, language="eng")]),
    (14, [MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)]),
    (1, [MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)]),
    (1, [reader(), MinhashDedupFilter(f"{work}/remove"), JsonlWriter(f"{work}/out", compression=None)]),
]
wall, cpu = time.perf_counter(), time.process_time()
for i, (tasks, pipeline) in enumerate(steps):
    LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=f"{work}/logs{i}").run()
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


# Runs a command and says what it took, in a process so small that its own memory is not the peak.
MEASURE = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps({"wall": time.perf_counter() - begin, "cpu": usage.ru_utime + usage.ru_stime,
                  "peak": usage.ru_maxrss * 1024, "status": status}))
"""


def ngrams(words):
    return {tuple(words[i:i + NGRAM]) for i in range(len(words) - NGRAM + 1)}


def jaccard(a, b):
    a, b = ngrams(a), ngrams(b)
    return len(a & b) / len(a | b)


def make_documents(megabytes, pairs_each, seed=1):
    """Documents as lists of words, and for the planted pairs (number, number, similarity)."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choices(letters, k=rng.choice([2, 3, 4, 4, 5, 6, 7, 9, 11]))) for _ in range(50000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))

    def words(count):
        return rng.choices(vocabulary, cum_weights=weights, k=count)

    documents, planted = [], []
    for similarity in SIMILARITIES:
        for _ in range(pairs_each):
            original = words(rng.randint(150, 600))
            copy = list(original)
            changes = max(1, round(len(copy) * (1 - similarity) / (NGRAM * (1 + similarity))))
            step = len(copy) / changes
            for i in range(changes):
                copy[int(i * step + rng.random() * max(0, step - NGRAM))] = rng.choice(vocabulary) + "qq"
            planted.append((original, copy, jaccard(original, copy)))
    size = sum(len(" ".join(a)) + len(" ".join(b)) for a, b, _ in planted)
    while size < megabytes * 1e6:
        documents.append(words(min(5000, max(20, int(rng.lognormvariate(5.6, 0.9))))))
        size += len(" ".join(documents[-1]))
    order = [(None, d) for d in documents]
    for i, (a, b, _) in enumerate(planted):
        order += [(i, a), (i, b)]
    rng.shuffle(order)
    return order, [s for _, _, s in planted], size


def write_files(folder, texts, num_files, blank_lines=0):
    os.makedirs(folder)
    for i in range(num_files):
        with open(f"{folder}/{i:03}.jsonl", "w", encoding="utf-8") as file:
            for text in texts[len(texts) * i // num_files:len(texts) * (i + 1) // num_files]:
                file.write(json.dumps({"text": text}) + "\n")
            file.write("\n" * blank_lines)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def skein_command(options, files, out, threads):
    return [options.skein, "data", "dedup", "--out", out, "--overwrite", "--json", "--exact", "off",
            "--memory", options.memory, "--threads", str(threads), *files]


def run_skein(options, files, out, threads=1, cores="0"):
    command = ["taskset", "-c", cores] * bool(cores) + skein_command(options, files, out, threads)
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["status"] != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return measured


def run_datatrove(folder, work):
    done = subprocess.run(["taskset", "-c", "0", sys.executable, "-c", RIVAL, folder, work],
                          capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["failed"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def read_arrow(path):
    import pyarrow
    return pyarrow.ipc.open_stream(pyarrow.memory_map(path)).read_all()["text"].to_pylist()


def read_jsonl(folder):
    return [json.loads(line)["text"] for name in sorted(os.listdir(folder))
            for line in open(f"{folder}/{name}", encoding="utf-8")]


def judge(name, order, similarities, kept):
    """Recall of the planted pairs, by their exact similarity, and how many others were removed."""
    kept = collections.Counter(kept)
    present = collections.Counter()
    others_removed = 0
    for pair, words in order:
        stays = kept[" ".join(words)] > 0
        if pair is None:
            others_removed += not stays
        elif stays:
            present[pair] += 1
    bins = collections.defaultdict(list)
    for pair, similarity in enumerate(similarities):
        bins[bisect.bisect(SIMILARITIES, similarity + 0.025) - 1].append((similarity, present[pair] < 2))
    removed = sum(found for pairs in bins.values() for _, found in pairs)
    right = sum(found for pairs in bins.values() for s, found in pairs if s >= 0.5)
    print(f"{name}: {removed + others_removed} documents removed, {others_removed} of them no planted ones; "
          f"{100 * right / max(1, removed + others_removed):.2f} % have a twin at 0.5 or more")
    print("  similarity  " + " ".join(f"{statistics.mean(s for s, _ in p):6.3f}" for _, p in sorted(bins.items())))
    print("  found, %    " + " ".join(f"{100 * statistics.mean(f for _, f in p):6.1f}" for _, p in sorted(bins.items())))
    promised = [statistics.mean(1 - (1 - s**ROWS)**BANDS for s, _ in p) for _, p in sorted(bins.items())]
    print("  promised, % " + " ".join(f"{100 * p:6.1f}" for p in promised))


def check_sameness(options, work, texts):
    def digest(path):
        return hashlib.sha256(open(path, "rb").read()).hexdigest()

    found, sets = set(), set()
    rng = random.Random(2)
    for num_files in (1, 3, 8):
        files = write_files(f"{work}/in{num_files}", texts, num_files)
        for threads in (1, 2, 8):
            run_skein(options, files, f"{work}/same.arrow", threads, cores="")
            found.add(digest(f"{work}/same.arrow"))
        rng.shuffle(files)
        run_skein(options, files, f"{work}/same.arrow", 2, cores="")
        sets.add(hashlib.sha256("\n".join(sorted(read_arrow(f"{work}/same.arrow"))).encode()).hexdigest())
    print(f"1, 3 and 8 files, 1, 2 and 8 threads: {'one output' if len(found) == 1 else 'DIFFERENT OUTPUTS'}; "
          f"files in another order: {'the same texts' if len(sets) == 1 else 'DIFFERENT TEXTS'}")
    files = write_files(f"{work}/pieces", texts, 5, blank_lines=PIECE_BYTES)
    for machines in (1, 2, 5):
        sign_on_machines(options, files, f"{work}/same.arrow", machines)
        run_skein(options, files, f"{work}/same.arrow", 2, cores="")
        found.add(digest(f"{work}/same.arrow"))
    print(f"1, 2 and 5 machines, one of them killed: {'that output' if len(found) == 1 else 'DIFFERENT OUTPUTS'}")
    return len(found) == 1 and len(sets) == 1


def sign_on_machines(options, files, out, machines):
    """Starts one process a machine, kills the first one and starts it again."""
    commands = [[*skein_command(options, files, out, 1), "--shard-index", f"{i}/{machines}"] for i in range(machines)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    time.sleep(0.3)
    processes[0].kill()
    processes[0].wait()
    processes[0] = subprocess.Popen(commands[0], stdout=subprocess.DEVNULL)
    if any([process.wait() for process in processes]):
        sys.exit("a machine failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=12)
    parser.add_argument("--pairs", type=int, default=200, help="of each similarity")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without datatrove")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--skein", default="build/skein")
    options = parser.parse_args()
    with open("/proc/cpuinfo") as cpuinfo:
        print(next(line for line in cpuinfo if line.startswith("model name")).split(":")[1].strip())
    order, similarities, size = make_documents(options.megabytes, options.pairs)
    texts = [" ".join(words) for _, words in order]
    results = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(dir=".", prefix=".dedup-bench-") as work:
        work = os.path.abspath(work)
        files = write_files(f"{work}/in", texts, 1)
        for i in range(options.rounds):
            results["skein"].append(run_skein(options, files, f"{work}/skein.arrow"))
            results["two threads"].append(run_skein(options, files, f"{work}/skein.arrow", 2, cores="0,1"))
            if options.alone:
                continue
            result, why = run_datatrove(f"{work}/in", f"{work}/datatrove{i}")
            if result is None:
                print(f"datatrove: passed over: {why}", file=sys.stderr)
            else:
                results["datatrove"].append(result)
        print(f"{len(texts)} documents, {size / 1e6:.1f} MB, one core but for two threads; medians of {options.rounds} rounds")
        print(f"{'':12} {'MB/s':>8} {'MB per s of CPU':>16} {'peak MB':>8}")
        for name, runs in results.items():
            def median(key):
                return statistics.median(run[key] for run in runs)
            print(f"{name:12} {size / 1e6 / median('wall'):8.2f} {size / 1e6 / median('cpu'):16.2f} "
                  f"{median('peak') / 1e6:8.0f}")
        judge("skein", order, similarities, read_arrow(f"{work}/skein.arrow"))
        if results["datatrove"]:
            judge("datatrove", order, similarities, read_jsonl(f"{work}/datatrove0/out"))
        if not check_sameness(options, work, texts):
            sys.exit(1)


if __name__ == "__main__":
    main()
