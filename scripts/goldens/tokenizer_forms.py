#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/forms/: a small tokenizer.json in each form of
scripts/judge/tokenizer_forms.py, and in ids.json the ids that `tokenizers` gives with it.

    {form: [{"text", "ids", "decoded"}]}

Needs tokenizers; no test runs this.
"""
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/judge"))
from tokenizer_forms import BYTE_FORMS, CHARACTER_FORMS, save  # noqa: E402

OUT = ROOT / "skein/data/tokenizer/testdata/forms"
TEXTS = [
    "", " ", "  ", "\n", "the quick a", "It's 12345 o'clock and 3.14", "  two  spaces \n\n and lines\r\n\r\n", "don'T we'LL 'S",
    "return x1+22;\t// 1,000,000 ½ ² Ⅷ ٣٤", "日本語 ひらがな カタカナ 한국어 漢字12漢", "e\u0301 \u00e9 ﬁ Å ㎏ a\u0323\u0301 각", "<b>bold</b> in a\n\n\nlist",
    "HTTPServer parseXMLFile camelCase ABC", "…?! (a) [b] $5 €6 “q”", "\u00a0\u2003x\u3000y\u200bz \u2581 a\u2581b", "😀👍🏽 \U0001f1e9\U0001f1ea",
    "x  </think>  y12 12 the other theme", "<s> <unk> <0x41> <|begin|>", "a-b--c -d-", "Ünïcödé ΑΒΓ абв אבג",
]


def random_texts(count):
    rng = random.Random(11)
    pools = [(32, 126), (32, 126), (9, 13), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x5ff), (0x900, 0x97f), (0x2000, 0x20cf),
             (0x3000, 0x30ff), (0x4e00, 0x4eff), (0x1100, 0x11ff), (0xac00, 0xac40), (0xff00, 0xff5e), (0x1f600, 0x1f64f),
             (32, 32), (39, 39), (48, 57)]
    return ["".join(chr(rng.randint(*rng.choice(pools))) for _ in range(rng.randint(1, 30))) for _ in range(count)]


def main():
    lines = (ROOT / "LICENSE").read_text().splitlines(keepends=True) + TEXTS
    goldens = {}
    for name in [*BYTE_FORMS, *CHARACTER_FORMS]:
        tokenizer = save(name, lines, 320 if name in BYTE_FORMS else 160, str(OUT / name))
        tokenizer.encode_special_tokens = True
        rows = goldens[name] = []
        for text in TEXTS + random_texts(40):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    (OUT / "ids.json").write_text(json.dumps(goldens, separators=(",", ":")) + "\n")


main()
