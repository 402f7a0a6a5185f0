#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/byte_level/: small byte-level BPE tokenizers and the ids that the
`tokenizers` package gives with them. Needs tokenizers; no test runs this.

  gpt2/tokenizer.json     GPT-2's pattern, no token before a text
  llama3/tokenizer.json   Llama 3's pattern, ignore_merges, a template that begins with BOS
  qwen2/tokenizer.json    Qwen 2's pattern, NFC, added tokens that are not special
  ids.json                {tokenizer: [{"text", "ids", "decoded"}]}
"""
import json
import pathlib
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "skein/data/tokenizer/testdata/byte_level"

REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
PATTERNS = {"llama3": WORDS + r"\p{N}{1,3}" + REST, "qwen2": WORDS + r"\p{N}" + REST}

TEXTS = ["", " ", "   ", "\n", "\t", "a", " a", "  a  b ", "hello world", "Hello, World!\n", "int main() {\n\treturn 0;\n}\n",
         "x\r\ny", "x \r\n\r\n  y", "12345 6.78", " 12345  67", "naïve café", "漢字かな交じり文", "🙂🙃 emoji 👩‍👩‍👧",
         "it's IT'S we'Re they'll I'd don't 'tis rock'n'roll 'ſ 'ſx ''s", "<|endoftext|> and <|begin_of_text|><|end_of_text|>",
         "a<think>b</think>c <think></think>", "<think", "a\u00a0b\u3000c\u2003\u2003d", "e\u0301 combining \u0301", "\u1112\u1161\u11ab \uac00\u11a7 \uac00\u11a8",
         "\u0000 null \u0000", "ＦＵＬＬ width", "tail \n\n\n", "tail \n \n ", "!!a !a ! a\t!\ta", "½ ² Ⅷ ٣٤٥٦ ၁၂", "\u2581 x", "\u212b \u0958 \u0344",
         "Ωмега שלום مرحبا नमस्ते ไทย", "the the the  the   the", "unbroken" * 60, "for (int i = 0; i < 10; ++i) sum += values[i];",
         "License license License's shall not"]


def random_texts(count):
    rng = random.Random(7)
    pools = [(32, 126), (9, 13), (0xa0, 0x17f), (0x300, 0x36f), (0x370, 0x3ff), (0x4e00, 0x4eff), (0x1100, 0x11ff), (0xac00, 0xac40),
             (0x1f600, 0x1f64f), (0x2000, 0x200f), (32, 32), (39, 39), (48, 57)]
    return ["".join(chr(rng.randint(*rng.choice(pools))) for _ in range(rng.randint(1, 40))) for _ in range(count)]


def make(name):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if name == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (ROOT / "LICENSE").read_text().splitlines(keepends=True) + TEXTS,
        trainers.BpeTrainer(vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    special = ["<|begin_of_text|>", "<|end_of_text|>"] if name == "llama3" else ["<|endoftext|>"]
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    if name == "qwen2":
        tokenizer.add_tokens([AddedToken("<think>", special=False, normalized=False),
                              AddedToken("</think>", special=False, normalized=True)])
    if name == "llama3":
        begin = special[0]
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A {begin} $B",
                                          special_tokens=[(begin, tokenizer.token_to_id(begin))])])
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": special[-1], "tokenizer_class": "PreTrainedTokenizerFast"}) + "\n")
    tokenizer.encode_special_tokens = True
    rows = []
    for text in TEXTS + random_texts(150):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    rng = random.Random(3)
    for _ in range(150):  # ids that no text gives
        ids = [rng.randrange(256 if rng.random() < 0.7 else tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 9))]
        rows.append({"ids": ids, "decoded": tokenizer.decode(ids)})
    return rows


(OUT).mkdir(parents=True, exist_ok=True)
(OUT / "ids.json").write_text(json.dumps({name: make(name) for name in ("gpt2", "llama3", "qwen2")}, separators=(",", ":")) + "\n")
