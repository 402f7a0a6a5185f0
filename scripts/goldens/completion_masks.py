#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/completion_masks.json: which tokens count of texts with completions, as transformers has
it (return_assistant_tokens_mask): those of which a character lies in one.

    {form: [{"text", "spans" (bytes), "ids", "counts"}]}

The tokenizers are those of skein/data/tokenizer/testdata/forms. Needs transformers; no test runs this.
"""
import json
import pathlib
import random

import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FORMS = ROOT / "skein/data/tokenizer/testdata/forms"
WORDS = ["the", "license", " ", "  ", "\n", " \n", "naïve", "漢字", "😀", "é!", "can't", "1234", ".", "of", "Work", "\n\n", "a"]


def conversation(rng):
    """Pieces of text, of which every second is a completion, which is not empty: of an empty one inside of a token
    transformers counts the token. The others may be."""
    return ["".join(rng.choice(WORDS) + rng.choice(["", " "]) for _ in range(rng.randrange(i % 2, 5)))
            for i in range(rng.randrange(2, 7))]


def main():
    goldens = {}
    rng = random.Random(4)
    for name in ("gpt2", "llama3", "qwen2", "starcoder", "o200k", "deepseek-v3", "llama2", "mistral", "gemma", "phi3"):
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(FORMS / name / "tokenizer.json"))
        tokenizer.chat_template = ("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
                                   "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}")
        cases = []
        for _ in range(40):
            pieces = conversation(rng)
            messages = [{"role": ["user", "assistant"][i % 2], "content": piece} for i, piece in enumerate(pieces)]
            made = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
            spans, at = [], 0
            for i, piece in enumerate(pieces):
                end = at + len(piece.encode())
                if i % 2 == 1:
                    spans += [at, end]
                at = end
            cases.append({"text": "".join(pieces), "spans": spans, "ids": made["input_ids"], "counts": made["assistant_masks"]})
        goldens[name] = [case for case in cases if case["text"]]
    path = ROOT / "skein/data/tokenizer/testdata/completion_masks.json"
    path.write_text(json.dumps(goldens, ensure_ascii=False, separators=(",", ":")).replace('],"', '],\n"').replace("},", "},\n") + "\n")


main()
