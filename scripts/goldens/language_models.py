#!/usr/bin/env python3
"""Trains the small models that fasttext_classifier_fuzz begins with, from lines of its own.

    scripts/goldens/language_models.py      (needs fasttext-wheel 0.9.2)
"""
import pathlib
import tempfile

import fasttext

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/fuzz/fasttext_classifier_fuzz"
LINES = """__label__en the river was frozen and we walked to the mill with a lamp
__label__de der fluss war gefroren und wir gingen mit einer lampe zur muehle
"""


def train(text, name, **options):
    model = fasttext.train_supervised(str(text), epoch=3, minCount=1, thread=1, verbose=0, **options)
    if name.endswith(".ftz"):
        model.quantize(input=str(text), qnorm=True, cutoff=300, retrain=False)
    model.save_model(str(OUT / name))


with tempfile.TemporaryDirectory() as folder:
    lines = pathlib.Path(folder) / "lines.txt"
    lines.write_text(LINES * 200)
    train(lines, "hs.bin", dim=4, minn=2, maxn=3, bucket=50, loss="hs")
    train(lines, "words.bin", dim=2, wordNgrams=2, bucket=30, loss="softmax")
    train(lines, "quantized.ftz", dim=4, minn=2, maxn=3, bucket=400, loss="hs")
