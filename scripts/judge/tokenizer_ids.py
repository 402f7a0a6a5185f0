#!/usr/bin/env python3
"""Compares the ids of our tokenizer, and what it makes of them, with sentencepiece or tokenizers.

    scripts/judge/tokenizer_ids.py TOKENIZER [TEXT…] [--mb 1000] [--random 1000000] [--processes 2]

TOKENIZER is a folder with tokenizer.model (judged by sentencepiece) or tokenizer.json (by
tokenizers), a TEXT is a file of UTF-8, such as many_scripts.py collects. What is encoded:

  scalar values    every one alone, and before and after a space, a newline and a digit
  decomposed       what Unicode composes, taken apart
  texts            the TEXTs as they are
  many scripts     --mb of documents of 64 Ki characters: passages of the TEXTs and made words
  random strings   --random short strings of characters that patterns treat differently
  random bytes     --random byte strings; tokenizers takes none, and gets U+FFFD for what is no UTF-8

Every document is decoded again. It must come back, or be what the judge decodes from these ids.
--only KIND, repeatable, asks for some of it. Each process takes documents of 16 MiB at a time.
Exit code 1, and the first differences, where any differ.
"""
import argparse
import array
import codecs
import collections
import multiprocessing
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from many_scripts import Texts, characters_by_script, document  # noqa: E402

TASK_BYTES = 16 << 20
SAME = 0xFFFFFFFF  # as tokenizer_bench says that a document came back
codecs.register_error("each_byte", lambda error: ("\ufffd" * (error.end - error.start), error.end))


def scalars(codes):
    for code in codes:
        if not 0xD800 <= code < 0xE000:
            c = chr(code)
            yield c.encode()
            for other in " \n7":
                yield (other + c).encode()
                yield (c + other).encode()


def decomposed():
    """What Unicode composes, taken apart, beside marks."""
    import unicodedata
    for code in list(range(0xA0, 0xD800)) + list(range(0xE000, 0x30000)):
        parts = unicodedata.normalize("NFD", chr(code))
        if parts != chr(code):
            for text in (parts, parts + "\u0301", parts[:1] + "\u0323" + parts[1:], "a" + parts):
                yield text.encode()
    for final in range(0x11A0, 0x11D0):
        yield ("\uac00" + chr(final)).encode()
        yield ("\u1100\u1161" + chr(final)).encode()


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
        yield "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 40))).encode()


def random_bytes(count, rng):
    for _ in range(count):
        yield rng.randbytes(rng.randrange(1, 24))


class Source:
    """The documents of all kinds, in tasks (kind, begin, end) that any process can do."""

    def __init__(self, options):
        self.options, self.texts = options, Texts(options.text)
        self.scripts = characters_by_script()

    def tasks(self):
        options = self.options
        num_documents = options.mb * 10**6 // (70 << 10) if self.texts.size else 0  # more, of several bytes a character
        for kind, end, step in (("scalar values", 0x110000, 1 << 16), ("decomposed", 1, 1),
                                ("texts", self.texts.size, TASK_BYTES), ("many scripts", num_documents, TASK_BYTES >> 16),
                                ("random strings", options.random, 100000), ("random bytes", options.random, 100000)):
            if not options.only or kind in options.only:
                yield from ((kind, begin, min(begin + step, end)) for begin in range(0, end, step))

    def documents(self, kind, begin, end):
        rng = random.Random(f"{self.options.seed} {kind} {begin}")
        if kind == "scalar values":
            return scalars(range(begin, end))
        if kind == "decomposed":
            return decomposed()
        if kind == "texts":
            return (self.texts.passage(at, min(65536, end - at)).encode() for at in range(begin, end, 65536))
        if kind == "many scripts":
            return (document(f"{self.options.seed} {i}", self.texts, self.scripts).encode() for i in range(begin, end))
        return (random_strings if kind == "random strings" else random_bytes)(end - begin, rng)


def ours(bench, folder, documents):
    """Of each document the ids, and what they decode to; None where that is the document."""
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/in", "wb") as file:
            for text in documents:
                file.write(struct.pack("<I", len(text)) + text)
        subprocess.run([bench, folder, "--judge", f"{work}/in", f"{work}/out"], check=True)
        data = open(f"{work}/out", "rb").read()
    at = 0
    while at < len(data):
        count, = struct.unpack_from("<I", data, at)
        ids = array.array("i", data[at + 4:at + 4 + 4 * count])
        at += 4 + 4 * count
        size, = struct.unpack_from("<I", data, at)
        at += 4
        yield ids.tolist(), None if size == SAME else data[at:at + size]
        at += 0 if size == SAME else size


def judge_of(folder):
    """Its name, documents to ids, ids to a text."""
    if os.path.exists(f"{folder}/tokenizer.model"):
        import sentencepiece
        model = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model")
        return ("sentencepiece " + sentencepiece.__version__, lambda batch: [model.encode(text) for text in batch],
                model.decode)
    import tokenizers
    model = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    model.encode_special_tokens = True  # a text that spells one is ordinary text, as in training

    def encode(batch):
        texts = [text.decode(errors="each_byte") for text in batch]
        return [found.ids for found in model.encode_batch_fast(texts, add_special_tokens=False)]

    return "tokenizers " + tokenizers.__version__, encode, model.decode


def begin_process(options):
    global source, judge
    source, judge = Source(options), judge_of(options.tokenizer)


def compare(task):
    """(kind, counts, first differences)"""
    _, encode, decode = judge
    documents = list(source.documents(*task))
    counts, first = collections.Counter(documents=len(documents), bytes=sum(map(len, documents))), []
    found = ours(source.options.bench, source.options.tokenizer, documents)
    num_found = 0
    for begin in range(0, len(documents), 64):
        batch = documents[begin:begin + 64]
        for text, expected, (ids, decoded) in zip(batch, encode(batch), found):
            num_found += 1
            counts["tokens"] += len(expected)
            if ids != expected:
                i = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
                first.append(f"{text[:80]!r}: from {i} on {ids[i:i + 20]}, expected {expected[i:i + 20]}")
                counts["wrong ids"] += 1
            if decoded is not None:
                counts["changed"] += 1
                if decoded != decode(expected).encode():
                    first.append(f"{text[:80]!r}: decoded to {decoded[:80]!r}, expected {decode(expected)[:80]!r}")
                    counts["wrong texts"] += 1
            first = first[:5]
    assert num_found == len(documents)
    return task[0], counts, first


def show_progress(kind, done, all_of_it, seconds):
    left = seconds / done * (all_of_it - done)
    line = f"{kind}: {done} of {all_of_it} parts, {seconds:.0f} s, {left:.0f} s left"
    print(f"\r\033[K{line}" if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr,
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="*")
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bench", default="build/tokenizer_bench")
    options = parser.parse_args()
    if options.processes > 1:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    print(f"judge: {judge_of(options.tokenizer)[0]}")
    tasks = list(Source(options).tasks())
    kinds = {kind: collections.Counter() for kind, _, _ in tasks}
    begin, shown = time.monotonic(), 0
    with multiprocessing.get_context("spawn").Pool(options.processes, begin_process, [options]) as pool:
        for done, (kind, counts, first) in enumerate(pool.imap(compare, tasks), 1):
            kinds[kind].update(counts)
            for line in first:
                print(f"  {kind}: {line}", flush=True)
            seconds = time.monotonic() - begin
            if seconds - shown > 10:
                shown = seconds
                show_progress(kind, done, len(tasks), seconds)
    for kind, counts in kinds.items():
        print(f"{kind:14} {counts['documents']:9} documents {counts['bytes'] / 1e6:7.1f} MB {counts['tokens']:10} tokens: "
              f"{counts['wrong ids']} ids differ, {counts['wrong texts']} texts; {counts['changed']} decode to another text, "
              f"as the judge has it")
    return 1 if any(counts["wrong ids"] or counts["wrong texts"] for counts in kinds.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
