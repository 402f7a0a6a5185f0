#!/usr/bin/env python3
"""Compares two Hugging Face folders as transformers sees them: `compare_folders.py SOURCE EXPORT`.

Prints one line a difference of tokens, ids of texts, ends of texts, generation defaults and config.json, and
ends with 1 if there is any. Needs transformers and torch; no test runs this.
"""
import sys

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

TEXTS = ["the quick brown fox", "  a  b ", "<think>she liked</think> to play <think> x", "hi<think>she", "1234567 8.9",
         "naïve café 漢字 🙂", "tail \n\n", "def f(x):\n\treturn x\n"]
# What a folder says of itself, not of the model.
NOT_COMPARED = {"_name_or_path", "name_or_path", "transformers_version", "torch_dtype", "dtype",
                # Of a generation_config.json that transformers makes or saves itself: null or the default.
                "use_cache", "output_attentions", "output_hidden_states"}


def of_tokenizer(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    facts = {"tokens": len(tokenizer), "eos": (tokenizer.eos_token, tokenizer.eos_token_id),
             "bos": (tokenizer.bos_token, tokenizer.bos_token_id), "pad": tokenizer.pad_token, "unk": tokenizer.unk_token,
             "chat_template": tokenizer.chat_template, "model_max_length": tokenizer.model_max_length,
             "padding_side": tokenizer.padding_side,
             "added": {i: (str(t), t.special) for i, t in sorted(tokenizer.added_tokens_decoder.items())},
             "vocabulary": tokenizer.get_vocab()}
    special = "".join(str(t) for t in tokenizer.added_tokens_decoder.values() if t.special)
    for text in [*TEXTS, special, f"a{special} b"]:
        facts[f"ids of {text[:60]!r}"] = tokenizer(text)["input_ids"]
        facts[f"ids of {text[:60]!r}, special tokens as text"] = tokenizer(text, split_special_tokens=True)["input_ids"]
    return facts


def of_generation(folder):
    try:
        return GenerationConfig.from_pretrained(folder).to_dict()
    except OSError:  # transformers makes one of the model's configuration
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(folder)).to_dict()


def differences(what, source, export):
    for key in sorted(set(source) | set(export)):
        if key not in NOT_COMPARED and source.get(key) != export.get(key):
            yield f"{what}: {key}: {str(source.get(key))[:200]} in the source, {str(export.get(key))[:200]} in the export"


def main():
    source, export = sys.argv[1:3]
    found = [*differences("tokenizer", of_tokenizer(source), of_tokenizer(export)),
             *differences("generation", of_generation(source), of_generation(export)),
             *differences("config", AutoConfig.from_pretrained(source).to_dict(), AutoConfig.from_pretrained(export).to_dict())]
    print("\n".join(found) or "nothing differs")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
