#!/usr/bin/env python3
"""Writes skein/bpe/unicode/ranges.inc: which characters \\p{L}, \\p{N} and \\s mean to `tokenizers`.

    scripts/goldens/unicode_classes.py > skein/bpe/unicode/ranges.inc

Needs the PyPI package tokenizers, whose regular expressions say what a class holds.
"""
import tokenizers
from tokenizers import Regex, pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def members(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = []
    for begin in range(0, len(CODES), 4096):
        chunk = CODES[begin:begin + 4096]
        kept = set()
        for _, (first, last) in split.pre_tokenize_str("".join(map(chr, chunk))):
            kept.update(range(first, last))
        found += [c for i, c in enumerate(chunk) if i not in kept]
    return found


print(f"// Made by scripts/goldens/unicode_classes.py with tokenizers {tokenizers.__version__}.")
for name, pattern in (("kLetter", r"\p{L}"), ("kNumber", r"\p{N}"), ("kSpace", r"\s")):
    ranges = []
    for code in members(pattern):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    entries = [f"{{0x{a:x}, 0x{b:x}, Class::{name}}}" for a, b in ranges]
    line = ""
    for entry in entries:
        if len(line) + len(entry) > 96:
            print(line)
            line = ""
        line += ("" if not line else " ") + entry + ","
    print(line)
