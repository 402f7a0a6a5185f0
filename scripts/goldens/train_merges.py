#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/byte_level/learnt.json: small documents, and the merges that `tokenizers`
learns from them with the patterns of GPT-2, Llama 3 and Qwen 2. Needs tokenizers.

    scripts/goldens/train_merges.py
"""
import json
import pathlib
import random

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

OUT = pathlib.Path(__file__).resolve().parents[2] / "skein/data/tokenizer/testdata/byte_level"


def documents():
    rng = random.Random(19)
    syllables = ["ab", "ba", "abc", "bc", "a", "aa", "na", "ka", "é", "ü", "日", "本", "он", "'s", "'ll", "12", "7", "==", "()"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 5))) for _ in range(160)]
    for _ in range(24):
        chosen = rng.choices(words, weights=[1 / (i + 1) for i in range(len(words))], k=rng.randint(5, 60))
        yield "".join(word + rng.choice([" ", " ", " ", "\n", "  ", ", ", ".\n\n", "\r\n", "\t"]) for word in chosen)
    yield "aaaaaaaaaaaaaaaaa aaaaaaaa aaaa aaa"
    yield "e\u0301e\u0301 e\u0301 \u00e9\u00e9"


def learn(texts, name, regex):
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=name == "gpt2")
    split = [pre_tokenizers.Split(Regex(regex), "isolated")] if regex else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, byte_level])
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=420, min_frequency=2, show_progress=False, special_tokens=["<|endoftext|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": model["merges"]}


patterns = {"gpt2": ""}
for name in ("llama3", "qwen2"):
    split = json.loads((OUT / name / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"][0]
    patterns[name] = split["pattern"]["Regex"]
texts = list(documents())
learnt = {name: learn(texts, name, regex) for name, regex in patterns.items()}
(OUT / "learnt.json").write_text(json.dumps({"documents": texts, "learnt": learnt}, ensure_ascii=True) + "\n")
