#!/usr/bin/env python3
"""Judges a corpus with readers of others: do they take it, and find the same documents?

    scripts/judge/corpus_readers.py CORPUS.arrow [--rows 100000]

pyarrow maps it, reads it as a stream and validates it in full; Hugging Face datasets, polars (its own
reader, in Rust) and nanoarrow (in C) read it, where they are installed. Of a larger corpus the first and
the last rows are compared, and the lengths of all. Needs pyarrow; run by hand.
Exit code 0: all agree; 1: something does not.
"""
import argparse
import sys

import pyarrow as pa
import pyarrow.compute as pc


def with_datasets(path):
    import datasets
    return datasets.Dataset.from_file(path).data.table


def with_polars(path):
    import polars
    return polars.read_ipc_stream(path, use_pyarrow=False).to_arrow()


def with_nanoarrow(path):
    import nanoarrow
    from nanoarrow.ipc import InputStream
    with InputStream.from_path(path) as stream:
        return pa.table(nanoarrow.ArrayStream(stream).read_all())


def streamed(path):
    with open(path, "rb") as file:
        return pa.ipc.open_stream(file).read_all()


def facts(table, rows):
    """All lengths, and the documents at both ends."""
    column = pc.cast(table["text"], pa.large_string())
    ends = pa.chunked_array(column.slice(0, rows).chunks + column.slice(max(0, len(column) - rows)).chunks)
    return pc.binary_length(column).to_pylist(), ends.to_pylist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    table = pa.ipc.open_stream(pa.memory_map(options.corpus)).read_all()
    table.validate(full=True)
    wanted = facts(table, options.rows)
    print(f"pyarrow, mapped: {table.num_rows} documents, valid")
    good = True
    for name, read in (("pyarrow, streamed", streamed), ("datasets", with_datasets), ("polars", with_polars),
                       ("nanoarrow", with_nanoarrow)):
        try:
            same = facts(read(options.corpus), options.rows) == wanted
        except ImportError:
            print(f"{name}: not installed")
            continue
        print(f"{name}: {'the same' if same else 'DIFFERENT'}")
        good &= same
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
