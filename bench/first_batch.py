#!/usr/bin/env python3
"""How long it takes until the first batch is there, from corpora that are large or in many files.

    bench/first_batch.py SKEIN TOKENIZER FOLDER [--rounds N] [--files N] [--terabytes N]

Makes in FOLDER a sparse file that looks like a corpus of 10 TB (its text is null bytes, its offsets
are real), and a folder of 10,000 corpora, then runs `skein data sample CONFIG --step 1`: it opens the
corpus, finds the first blocks of 8 lanes, tokenizes and packs them, and prints the batch. The time of
`skein version` is that of starting the program; page caches are dropped before each round where the
kernel allows it. Needs: pip install pyarrow numpy
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

import numpy
import pyarrow

DOCUMENT_BYTES = 500_000


class SparseFile:
    """Writes what is small, and leaves a hole where a buffer is large."""

    def __init__(self, path, text):
        self.file, self.text, self.closed = open(path, "wb"), text, False

    def write(self, data):
        size = memoryview(data).nbytes
        if size == self.text.nbytes:
            self.file.seek(size, os.SEEK_CUR)
        else:
            self.file.write(data)
        return size

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()
        self.closed = True


def write_sparse(path, num_bytes):
    count = num_bytes // DOCUMENT_BYTES
    offsets = numpy.arange(count + 1, dtype=numpy.int64) * DOCUMENT_BYTES
    holes = path.with_suffix(".holes")
    text = numpy.memmap(holes, dtype=numpy.uint8, mode="w+", shape=(count * DOCUMENT_BYTES,))
    column = pyarrow.Array.from_buffers(
        pyarrow.large_string(), count, [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text)])
    schema = pyarrow.schema([("text", pyarrow.large_string())])
    sink = SparseFile(path, text)
    with pyarrow.ipc.new_stream(pyarrow.PythonFile(sink, "w"), schema) as writer:
        writer.write_batch(pyarrow.record_batch([column], schema=schema))
    sink.close()
    holes.unlink()


def write_many(folder, count):
    folder.mkdir()
    schema = pyarrow.schema([("text", pyarrow.large_string())])
    for i in range(count):
        batch = pyarrow.record_batch([[f"document {i} {d} " * 40 for d in range(5)]], schema=schema)
        with pyarrow.ipc.new_stream(folder / f"part-{i:05}-of-{count:05}.arrow", schema) as writer:
            writer.write_batch(batch)


def drop_caches():
    try:
        subprocess.run(["sync"], check=True)
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    except OSError:
        return False


def seconds(command):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("skein")
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--terabytes", type=float, default=10)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    sparse, many = options.folder / "sparse.arrow", options.folder / "many"
    if not sparse.exists():
        write_sparse(sparse, int(options.terabytes * 1e12))
    if not many.exists():
        write_many(many, options.files)
    config = options.folder / "config.toml"
    config.write_text("[model]\nhidden_size = 64\nintermediate_size = 128\nnum_hidden_layers = 2\n"
                      f'num_attention_heads = 4\n[data]\ntokenizer = "{options.tokenizer.resolve()}"\n'
                      "sequence_length = 512\n[batch]\nglobal_sequences = 8\n")
    commands = {"the program alone": [options.skein, "version"]}
    for name, corpus in ((f"a file of {sparse.stat().st_size / 1e12:.1f} TB", sparse),
                         (f"{options.files} files", many)):
        commands[name] = [options.skein, "data", "sample", config, "--step", "1", "--json",
                          "--set", f"data.train={corpus.resolve()}"]
    times = {name: [] for name in commands}
    for _ in range(options.rounds):
        cold = drop_caches()
        for name, command in commands.items():
            times[name].append(seconds(command))
    print(f"first batch, seconds, medians of {options.rounds}"
          f"{', file cache dropped before each round' if cold else ''}")
    for name, found in times.items():
        print(f"  {name:<22} {statistics.median(found):.3f}   (most {max(found):.3f})")


if __name__ == "__main__":
    main()
