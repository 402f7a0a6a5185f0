#!/usr/bin/env python3
"""Compares the ids of our tokenizer with those of sentencepiece or tokenizers.

    scripts/judge/tokenizer_ids.py TOKENIZER [TEXT…] [--random N] [--bench build/tokenizer_bench]

TOKENIZER is a folder with tokenizer.model (judged by sentencepiece) or tokenizer.json (by
tokenizers). What is encoded: every Unicode scalar value alone, and before and after a space, a
newline and a digit; decomposed characters; the texts, whole files cut into documents of 64 KiB; N random byte strings
(of sentencepiece; tokenizers takes none) and N random strings of characters. Exit code 1 and the
first differences where any differ.
"""
import argparse
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile


def scalars():
    for code in list(range(0xD800)) + list(range(0xE000, 0x110000)):
        c = chr(code)
        yield c
        for other in " \n7":
            yield other + c
            yield c + other


def decomposed():
    """What Unicode composes, taken apart, beside marks."""
    import tokenizers
    nfd = tokenizers.normalizers.NFD()
    for code in list(range(0xA0, 0xD800)) + list(range(0xE000, 0x30000)):
        parts = nfd.normalize_str(chr(code))
        if parts != chr(code):
            for text in (parts, parts + "\u0301", parts[:1] + "\u0323" + parts[1:], "a" + parts):
                yield text
    for final in range(0x11A0, 0x11D0):
        yield "\uac00" + chr(final)
        yield "\u1100\u1161" + chr(final)


def texts(paths, size=65536):
    for path in paths:
        text = open(path, encoding="utf-8", errors="replace", newline="").read()
        for begin in range(0, len(text), size):
            yield text[begin:begin + size]


def random_bytes(count, rng):
    for _ in range(count):
        yield rng.randbytes(rng.randrange(1, 24))


def random_strings(count, rng):
    pools = [
        [chr(c) for c in range(32, 127)], list(" \n\r\t'sS") + ["'s", "'LL", "  ", "\r\n", "12", "345"],
        [chr(c) for c in range(0xA0, 0x600)], [chr(c) for c in range(0x3040, 0x3100)],
        [chr(c) for c in range(0x4E00, 0x5000)], [chr(c) for c in range(0x300, 0x370)] + list("aeiou "),
        [chr(c) for c in range(0x1F300, 0x1F650)] + ["\u200d", "\ufe0f"],
        [chr(c) for c in (0x20, 0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x202F, 0x3000, 0x200B, 0x2581)],
        [chr(c) for c in range(0xAC00, 0xAD00)] + [chr(c) for c in range(0x1100, 0x1200)],
    ]
    for _ in range(count):
        yield "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 40)))


def our_ids(bench, folder, documents):
    """In one process: (ids of each document, how many did not decode to what they were)."""
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/in", "wb") as file:
            for document in documents:
                file.write(struct.pack("<I", len(document)) + document)
        out = subprocess.run([bench, folder, "--judge", f"{work}/in", f"{work}/out"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        data = open(f"{work}/out", "rb").read()
    ids, at = [], 0
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at)
        ids.append(array.array("i", data[at + 4:at + 4 + 4 * count]))
        at += 4 + 4 * count
    return ids, json.loads(out)["changed"]


def judge_of(folder):
    if os.path.exists(f"{folder}/tokenizer.model"):
        import sentencepiece
        model = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model")
        return "sentencepiece " + sentencepiece.__version__, lambda batch: [
            model.encode(document) for document in batch]
    import tokenizers
    model = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    model.encode_special_tokens = True  # a text that spells one is ordinary text, as in training
    return "tokenizers " + tokenizers.__version__, lambda batch: [
        e.ids for e in model.encode_batch([b.decode() for b in batch], add_special_tokens=False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="*")
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--bench", default="build/tokenizer_bench")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    name, judge = judge_of(options.tokenizer)
    rng = random.Random(options.seed)
    takes_bytes = name.startswith("sentencepiece")
    kinds = {
        "scalar values": (s.encode() for s in scalars()),
        "decomposed": (s.encode() for s in ([] if takes_bytes else decomposed())),
        "texts": (s.encode() for s in texts(options.text)),
        "random strings": (s.encode() for s in random_strings(options.random, rng)),
        "random bytes": random_bytes(options.random if takes_bytes else 0, rng),
    }
    failed = False
    print(f"judge: {name}")
    for kind, documents in kinds.items():
        num, size, wrong, changed, tokens = 0, 0, 0, 0, 0
        batch = []

        def compare():
            nonlocal num, size, wrong, changed, tokens
            ours, not_back = our_ids(options.bench, options.tokenizer, batch)
            changed += not_back
            assert len(ours) == len(batch)
            for document, mine, theirs in zip(batch, ours, judge(batch)):
                num, size, tokens = num + 1, size + len(document), tokens + len(theirs)
                if list(mine) != list(theirs):
                    wrong += 1
                    if wrong <= 5:
                        print(f"  {document[:80]!r}: {list(mine)[:30]}, expected {list(theirs)[:30]}")
            batch.clear()

        held = 0
        for document in documents:
            batch.append(document)
            held += len(document) + 64
            if held > 1 << 27:
                compare()
                held = 0
        if batch:
            compare()
        failed |= wrong > 0
        print(f"{kind:15} {num:9} documents {size / 1e6:9.1f} MB {tokens:11} tokens: {wrong} differ, "
              f"{changed} do not decode to what they were")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
