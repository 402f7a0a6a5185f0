#!/usr/bin/env python3
"""Makes skein/evaluate/testdata/python_random.json: what Python's random.Random draws, in the order of the calls.

    scripts/goldens/python_random.py
"""

import json
import random
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "skein" / "evaluate" / "testdata" / "python_random.json"

# Of each seed, calls in order: their state runs on.
CALLS = [("sample", 100, 5), ("sample", 100, 5), ("sample", 10, 3), ("sample", 5000, 7), ("sample", 90, 30),
         ("sample", 86, 6), ("sample", 85, 6), ("sample", 21, 5), ("sample", 22, 5), ("sample", 3, 3),
         ("sample", 4, 0), ("choices", 100, 6), ("shuffled", 8), ("shuffled", 1000), ("random",), ("random",),
         ("getrandbits", 5), ("getrandbits", 32), ("sample", 1000000, 100), ("random",)]


def call(generator, name, *arguments):
    if name == "sample":
        return generator.sample(range(arguments[0]), arguments[1])
    if name == "choices":
        return generator.choices(range(arguments[0]), k=arguments[1])
    if name == "shuffled":
        items = list(range(arguments[0]))
        generator.shuffle(items)
        return items
    return getattr(generator, name)(*arguments)


def main():
    cases = []
    for seed in (0, 1, 42, 1234, 2**32 - 1, 2**32, 2**40 + 7, 2**64 - 1):
        generator = random.Random(seed)
        calls = [{"call": list(one), "result": call(generator, *one)} for one in CALLS]
        cases.append({"seed": seed, "calls": calls})
    OUT.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
