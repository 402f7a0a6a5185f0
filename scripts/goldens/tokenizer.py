#!/usr/bin/env python3
"""Writes skein/data/testdata/tokenizer/: small SentencePiece models and the ids that the `sentencepiece`
package gives with them. Needs sentencepiece; no test runs this.

  llama/tokenizer.model    BPE with byte fallback, trained with Llama 2's options
  rules/tokenizer.model    BPE whose normalizer has rules (a precompiled_charsmap) and trims spaces
  unigram/tokenizer.model  unigram, with a user-defined symbol
  ids.json                 {model: [{"text", "ids", "decoded"}]}
"""
import io
import json
import pathlib
import random

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "skein/data/testdata/tokenizer"

LLAMA = dict(model_type="bpe", byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True,
             normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True,
             character_coverage=0.99995, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)

TEXTS = ["", " ", "   ", "\n", "\t", "a", " a", "  a  b ", "hello world", "Hello, World!\n", "int main() {\n\treturn 0;\n}\n",
         "x\r\ny", "12345 6.78", "naïve café", "漢字かな交じり文", "🙂🙃 emoji 👩‍👩‍👧", "<s> and </s> and <unk>", "<0x41>",
         "▁ already ▁▁ marked", "a\u00a0b\u3000c", "e\u0301 combining", "\u0000 null \u0000", "ＦＵＬＬ width", "tail \n\n\n",
         "the the the  the   the", "for (int i = 0; i < 10; ++i) sum += values[i];"]


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
    for text in TEXTS + random_texts(60) + [long_text()]:
        ids = processor.encode(text)
        rows.append({"text": text, "ids": ids, "decoded": processor.decode(ids)})
    return rows


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rules = OUT / "rules.tsv"
    rules.write_text("FF46 FF55\t0066 0075\nFF21\t0041\n3000\t0020\n00A0\t0020\n0065 0301\t00E9\n")
    goldens = {
        "llama": train("llama", 512, **LLAMA),
        "rules": train("rules", 480, **{**LLAMA, "remove_extra_whitespaces": True, "normalization_rule_name": "",
                                        "normalization_rule_tsv": str(rules)}),
        "unigram": train("unigram", 300, model_type="unigram", normalization_rule_name="identity",
                         user_defined_symbols=["return"], hard_vocab_limit=False),
    }
    rules.unlink()
    (OUT / "ids.json").write_text(json.dumps(goldens, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
