#!/usr/bin/env python3
"""Compares the ids of our tokenizer with those of tokenizers, in every form that people have.

    scripts/judge/tokenizer_forms.py TEXT… [--form FORM]… [--mb 100] [--random 1000000] [--keep DIR]

TEXT is what many_scripts.py collects. Trains a vocabulary of 6,000 tokens with `tokenizers` in each
form, then gives the folder to tokenizer_ids.py, and prints a line a form. Exit code 1, and the first
differences, where any differ. --keep leaves the folders in DIR; what else tokenizer_ids.py knows
(--only KIND) is given on. Needs the PyPI package tokenizers.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4 = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"
        r"|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace(ENDING, "").replace(r"\p{N}{1,3}", r"\p{N}")
KIMI = r"[\p{Han}]+|" + O200K.replace("]*", r"&&[^\p{Han}]]*").replace(r"\p{M}]+", r"\p{M}&&[^\p{Han}]]+").replace(
    r"[\r\n/&&[^\p{Han}]]*", r"[\r\n]*")
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
DEEPSEEK_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯ\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba"
    "\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U0001e900-\U0001e943]+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def bytes_of(*steps, use_regex=False, add_prefix_space=False):
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space,
                                                                     use_regex=use_regex)])


def digits(individual=True):
    return pre_tokenizers.Digits(individual_digits=individual)


# Over bytes: (pre-tokenizer, normalizer).
BYTE_FORMS = {
    "gpt2": (pre_tokenizers.ByteLevel(add_prefix_space=False), None),
    "roberta": (pre_tokenizers.ByteLevel(add_prefix_space=True), None),
    "llama3": (bytes_of(split(LLAMA3)), None),
    "qwen2": (bytes_of(split(QWEN2)), normalizers.NFC()),
    "gpt4": (bytes_of(split(GPT4, "removed", True)), None),
    "o200k": (bytes_of(split(O200K)), None),
    "tekken": (bytes_of(split(TEKKEN)), None),
    "kimi": (bytes_of(split(KIMI)), None),
    "starcoder": (bytes_of(digits(), use_regex=True), None),
    "command-r": (bytes_of(digits(), use_regex=True), normalizers.NFC()),
    "deepseek-v2": (bytes_of(split(r"[\r\n]"), split(DEEPSEEK_LETTERS), split("\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+"),
                             split(r"\s+$"), split("[一-龥ࠀ-一가-\ud7ff]+"), digits()), None),
    "deepseek-v3": (bytes_of(split(r"\p{N}{1,3}"), split(r"[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3)), None),
    "bloom": (bytes_of(split(BLOOM)), None),
    "falcon": (pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False), digits(False),
                                        split(r"[0-9][0-9][0-9]")]), None),
    "words": (bytes_of(pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")),
              normalizers.NFKC()),
    "parts": (bytes_of(pre_tokenizers.Whitespace(), split("-", "merged_with_next"), add_prefix_space=True),
              normalizers.Sequence([normalizers.NFD(), normalizers.Replace(Regex(r"[\r\n]+"), "\n")])),
    "marks": (bytes_of(split(r"\w+(?:'\w+)?\b"), split(r"(?<=\d)(?=(?:\d{3})+$)"), split(" ", "merged_with_previous")),
              normalizers.NFKD()),
}
LLAMA2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
LLAMA2_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                    decoders.Strip(" ", 1, 0)])
# Over characters: (pre-tokenizer, normalizer, decoder, options of the model).
CHARACTER_FORMS = {
    "llama2": (None, LLAMA2, LLAMA2_DECODER, {}),
    "phi3": (None, LLAMA2, LLAMA2_DECODER, {"fuse_unk": True}),
    "mistral": (pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False), None, LLAMA2_DECODER, {}),
    "metaspace": (pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True), None,
                  decoders.Metaspace("▁", prepend_scheme="always", split=True), {}),
    "gemma": (split(" ", "merged_with_previous"), normalizers.Replace(" ", "▁"),
              decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]), {}),
    "never": (pre_tokenizers.Metaspace("▁", prepend_scheme="never", split=False), None, LLAMA2_DECODER, {}),
    "unknown": (None, LLAMA2, LLAMA2_DECODER, {"byte_fallback": False, "fuse_unk": True}),
    "unknowns": (pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True), None, LLAMA2_DECODER,
                 {"byte_fallback": False, "fuse_unk": False}),
}


def byte_form(name, lines, size):
    pre_tokenizer, normalizer = BYTE_FORMS[name]
    tokenizer = Tokenizer(models.BPE(ignore_merges=name in ("llama3", "tekken")))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens(["<|begin|>", "<|end|>"])
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", begin)])
    return tokenizer, {"bos_token": "<|begin|>", "eos_token": "<|end|>"}


def character_form(name, lines, size):
    pre_tokenizer, normalizer, decoder, options = CHARACTER_FORMS[name]
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Metaspace("▁")
    learnt.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=1000))
    model = json.loads(learnt.to_str())["model"]
    options = {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>", **options}
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256) if options["byte_fallback"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    merges = [tuple(merge) for merge in model["merges"]] + [("▁", "▁"), ("▁▁", "▁▁"), ("▁▁▁▁", "▁▁▁▁")]
    for token in [*model["vocab"], "▁", *map("".join, merges)]:
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, **options))
    tokenizer.decoder = decoder
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    if name == "phi3":
        tokenizer.add_tokens([AddedToken("</think>", rstrip=True, normalized=False),
                              AddedToken("12", single_word=True, normalized=False),
                              AddedToken("the", lstrip=True, single_word=True, normalized=False)])
    if name == "gemma":
        tokenizer.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(2, 9)] +
                             [AddedToken("<b>", normalized=True), AddedToken("in a", normalized=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def save(name, lines, size, folder):
    tokenizer, config = (byte_form if name in BYTE_FORMS else character_form)(name, lines, size)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(f"{folder}/tokenizer.json", pretty=False)
    with open(f"{folder}/tokenizer_config.json", "w") as file:
        json.dump({**config, "tokenizer_class": "PreTrainedTokenizerFast"}, file)
        file.write("\n")
    return tokenizer


def sample(texts, num_bytes):
    """Lines from all over the texts."""
    lines = []
    for path in texts:
        step = max(1, os.path.getsize(path) // (num_bytes >> 16))
        with open(path, "rb") as file:
            for at in range(0, os.path.getsize(path), step):
                file.seek(at)
                lines += file.read(1 << 16).decode(errors="ignore").splitlines(keepends=True)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+")
    parser.add_argument("--form", action="append", default=[])
    parser.add_argument("--keep")
    parser.add_argument("--size", type=int, default=6000)
    options, rest = parser.parse_known_args()
    judge = pathlib.Path(__file__).with_name("tokenizer_ids.py")
    lines = sample(options.text, 2 << 20)
    print(f"judge: tokenizers {tokenizers.__version__}", flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as work:
        for name in options.form or [*BYTE_FORMS, *CHARACTER_FORMS]:
            folder = f"{options.keep or work}/{name}"
            if not os.path.exists(f"{folder}/tokenizer.json"):
                save(name, lines, options.size, folder)
            done = subprocess.run([sys.executable, judge, folder, *options.text, *rest], stdout=subprocess.PIPE, text=True)
            kinds = re.findall(r"(\d+) documents +([\d.]+) MB.*: (\d+) ids differ, (\d+) texts", done.stdout)
            documents, megabytes = (sum(float(kind[i]) for kind in kinds) for i in (0, 1))
            ids, texts = (sum(int(kind[i]) for kind in kinds) for i in (2, 3))
            failed |= done.returncode != 0 or not kinds
            print(f"{name:12} {documents:9.0f} documents {megabytes:7.1f} MB: {ids} ids differ, {texts} texts"
                  f"{'' if kinds else ': FAILED'}", flush=True)
            print("".join(f"{line}\n" for line in done.stdout.splitlines() if line.startswith("  ")), end="", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
