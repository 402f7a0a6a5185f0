#!/usr/bin/env python3
"""Prints the fingerprints that skein/data/lanes/corpus_fingerprint_test.cc expects, by the xxhash package.

    scripts/goldens/corpus_fingerprint.py        needs: pip install xxhash
"""
import struct

import xxhash

WINDOWS, WINDOW_BYTES = 256, 16384


def fingerprint(texts):
    text = b"".join(texts)
    digest = xxhash.xxh3_128()
    for document in texts:
        digest.update(struct.pack("<q", len(document)))
    whole = len(text) <= WINDOWS * WINDOW_BYTES
    for window in range(WINDOWS):
        begin = window * WINDOW_BYTES if whole else (len(text) - WINDOW_BYTES) * window // (WINDOWS - 1)
        digest.update(text[begin : begin + WINDOW_BYTES])
    return digest.hexdigest()


def large_texts():
    texts, size = [], 0
    while size < 3 * WINDOWS * WINDOW_BYTES:
        i = len(texts)
        texts.append((b"ab" * 200_000)[: 300_000 if i % 3 == 0 else 5000 + i])
        size += len(texts[-1])
    return texts


print(fingerprint([b"abc", b"", b"de"]))
print(fingerprint(large_texts()))
