#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/models/: small SentencePiece models and the ids that the `sentencepiece`
package gives with them. Needs sentencepiece; no test runs this.

  llama/tokenizer.model    BPE with byte fallback, trained with Llama 2's options
  rules/tokenizer.model    BPE whose normalizer has rules (a precompiled_charsmap) and trims spaces
  unigram/tokenizer.model  unigram, with a user-defined symbol
  bare/tokenizer.model     as llama, without a space before the text, byte fallback and BOS
  trim/tokenizer.model     as llama, trims and joins spaces
  symbols/tokenizer.model  as llama, with user-defined symbols, more control tokens, another name for BOS
  ids.json                 {model: [{"text", "ids", "decoded"}]}

With names of models as arguments only these are made, and replaced in ids.json.
"""
import io
import json
import pathlib
import random
import sys

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "skein/data/tokenizer/testdata/models"

LLAMA = dict(model_type="bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
             normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True,
             character_coverage=0.99995, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)

TEXTS = ["", " ", "   ", "\n", "\t", "a", " a", "  a  b ", "hello world", "Hello, World!\n", "int main() {\n\treturn 0;\n}\n",
         "x\r\ny", "12345 6.78", "naïve café", "漢字かな交じり文", "🙂🙃 emoji 👩‍👩‍👧", "<s> and </s> and <unk>", "<0x41>",
         "▁ already ▁▁ marked", "a\u00a0b\u3000c", "e\u0301 combining", "\u0000 null \u0000", "ＦＵＬＬ width", "tail \n\n\n",
         "the the the  the   the", "for (int i = 0; i < 10; ++i) sum += values[i];"]


# Beside user-defined symbols: what spells a byte, a control token, a symbol with more or less of it.
SYMBOL_TEXTS = ["return", " return", "returnreturn", "retur n", "unreturned", "<|x|><s><|x|>", "<|x|></s>", "<|x|><unk>return",
                "return<0x41>return", "<pad>", "<|x|><pad><|x|>", "a<|x|> b", "   ", "    ", "     x", "x\t\ty", "日本語", "日 本", "é", "e\u0301"]


def random_texts(count):
    rng = random.Random(7)
    pools = [(32, 126), (9, 13), (0xa0, 0x17f), (0x370, 0x3ff), (0x4e00, 0x4eff), (0x1f600, 0x1f64f), (32, 32)]
    return ["".join(chr(rng.randint(*rng.choice(pools))) for _ in range(rng.randint(1, 40))) for _ in range(count)]


def long_text():
    """Longer than what an encoder may take at a time."""
    return "".join(text + "\n" for text in (TEXTS * 10)) + "unbroken" * 300


def training_text():
    return (ROOT / "LICENSE").read_text().splitlines() + TEXTS


def train(name, vocab_size, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text for text in training_text() if text and "\0" not in text), model_writer=model,
                                             vocab_size=vocab_size, minloglevel=2, **options)
    (OUT / name).mkdir(parents=True, exist_ok=True)
    (OUT / name / "tokenizer.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    rows = []
    for text in TEXTS + SYMBOL_TEXTS * (name == "symbols") + random_texts(60) + [long_text()]:
        ids = processor.encode(text)
        rows.append({"text": text, "ids": ids, "decoded": processor.decode(ids)})
    return rows


def train_rules(name):
    rules = OUT / "rules.tsv"
    rules.write_text("FF46 FF55\t0066 0075\nFF21\t0041\n3000\t0020\n00A0\t0020\n0065 0301\t00E9\n")
    rows = train(name, 480, **{**LLAMA, "remove_extra_whitespaces": True, "normalization_rule_name": "",
                               "normalization_rule_tsv": str(rules)})
    rules.unlink()
    return rows


MODELS = {
    "llama": lambda name: train(name, 512, **LLAMA),
    "rules": train_rules,
    "unigram": lambda name: train(name, 300, model_type="unigram", normalization_rule_name="identity",
                                  user_defined_symbols=["return"], hard_vocab_limit=False),
    "bare": lambda name: train(name, 300, **{**LLAMA, "add_dummy_prefix": False, "byte_fallback": False, "bos_id": -1, "eos_id": 1}),
    "trim": lambda name: train(name, 480, **{**LLAMA, "remove_extra_whitespaces": True}),
    "symbols": lambda name: train(name, 512, user_defined_symbols=["return", "retur", "<|x|>", "▁▁▁", "\t", "日本", "é"],
                                  control_symbols=["<pad>"], bos_piece="<|begin|>", **LLAMA),
}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / "ids.json"
    goldens = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or MODELS:
        goldens[name] = MODELS[name](name)
    path.write_text(json.dumps(goldens, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
