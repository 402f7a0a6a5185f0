#!/usr/bin/env python3
"""Judges an exported folder with transformers: does it load, and do the numbers agree?

    skein score --model HF_DIR --tokens TOKENS.json > LOGPROBS.json
    scripts/judge/check_export.py HF_DIR --tokens TOKENS.json --logprobs LOGPROBS.json
                                  [--text FILE]… [--tolerance 1e-4]
    scripts/judge/check_export.py HF_DIR --tokenizer-only [--text FILE]…

Log-probabilities: transformers in float32, eager attention, against `skein score`.
Tokenizer: the ids of AutoTokenizer, as it comes, against BOS and those of SentencePiece's own
tokenizer.model, and the text that it decodes them to: on awkward texts, made-up ones, the text files
named and their lines. LlamaTokenizer and LlamaTokenizerFast, asked for by name, may differ where a
text begins with a space: in transformers 5 they put no other space before it. (They know models of
Llama 2's kind alone: for models that trim spaces, have symbols of their own or no byte fallback
AutoTokenizer is asked.)
Needs transformers, sentencepiece and, but for --tokenizer-only, torch; run by hand.
Exit code 0: all agree; 1: something does not.
"""

import argparse
import json
import random
import sys
from pathlib import Path

import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

AWKWARD_LINES = [
    "", " ", "  two  spaces ", "\ttab\n", "int main(void) { return 0; }\n", "naïve café — “quotes”",
    "日本語 русский العربية", "🙂👩‍👩‍👧", "1234567890", "a" * 300, "\r\nline\r\n", "<s> </s> <unk>", "\x00\x7f",
    " a", "   a", "a ", "a   ", "\n", "\n\n\n", " \n ", "▁", " ▁ ▁▁", "▁a", "<s>", "</s>", "a<s>b", "<unk>", "<pad>", "<0x0A>", "<0x41>",
    "<|begin_of_text|>", "[INST] x [/INST]", "e\u0301 é", "ﬁ ﬀ Ａ １", "\u200b\u200d\ufeff", "\u00a0\u3000\u2028", "".join(map(chr, range(32))),
    "1 22 333 4444 55555", "3.14 1e-9 0x1F", "a\u0300\u0301\u0302", "🏳️‍🌈🇩🇪", "한국어 ไทย हिन्दी", "\ue000\U0010ffff", "\t\t\t x",
    " " * 200, "ab" * 100, "=" * 80 + "\n",
]


def made_up_texts(count):
    generator = random.Random(11)
    words = AWKWARD_LINES[1:] + ["the", " the", "return", " ", "  ", "\n", "ing", "1"]
    pools = [(32, 126), (32, 126), (9, 13), (0xa0, 0x24f), (0x300, 0x4ff), (0x4e00, 0x4fff), (0x1f600, 0x1f64f), (0, 0x10ffff)]
    texts = []
    for _ in range(count):
        parts = [generator.choice(words) if generator.random() < 0.4 else chr(generator.randint(*generator.choice(pools)))
                 for _ in range(generator.randint(1, 40))]
        texts.append("".join(part for part in parts if not (len(part) == 1 and 0xd800 <= ord(part) < 0xe000)))
    return texts


def largest_difference(found, expected, path):
    """Over all tokens; the lists must have one shape and null in the same places."""
    if [len(row) for row in found] != [len(row) for row in expected]:
        sys.exit(f"{path}: {[len(row) for row in found]} log-probabilities, expected "
                 f"{[len(row) for row in expected]}")
    worst = 0.0
    for row, (mine, theirs) in enumerate(zip(found, expected)):
        for token, (a, b) in enumerate(zip(mine, theirs)):
            if (a is None) != (b is None):
                sys.exit(f"{path}: sequence {row}, token {token} is {a}, expected {b}")
            if a is not None:
                difference = abs(a - b)
                worst = max(worst, difference if difference == difference else float("inf"))
    return worst


def score(model, sequences):
    import torch
    result = []
    for tokens in sequences:
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0].float()
        table = torch.log_softmax(logits, -1)
        result.append([None] + [table[i - 1, tokens[i]].item() for i in range(1, len(tokens))])
    return result


def check_model(arguments):
    import torch
    config = AutoConfig.from_pretrained(arguments.folder)
    dtype_key = "torch_dtype" if transformers.__version__.startswith("4.") else "dtype"
    model, report = AutoModelForCausalLM.from_pretrained(
        arguments.folder, attn_implementation="eager", output_loading_info=True,
        **{dtype_key: torch.float32})
    problems = {key: value for key, value in report.items() if value}
    print(f"{config.model_type}, {sum(p.numel() for p in model.parameters())} parameters; "
          f"loading problems: {problems or 'none'}")
    sequences = json.loads(Path(arguments.tokens).read_text())
    found = json.loads(Path(arguments.logprobs).read_text())["logprobs"]
    worst = largest_difference(found, score(model.eval(), sequences), arguments.logprobs)
    print(f"log-probabilities: {sum(map(len, sequences))} tokens, largest difference {worst:.2e}, "
          f"tolerance {arguments.tolerance:.0e}")
    return worst <= arguments.tolerance and not problems


def compare(name, tokenizer, reference, texts, excused=lambda text: False, decodes=True):
    """Prints the first differences; the number of texts that differ and are not excused."""
    bos = [reference.bos_id()] * (reference.bos_id() >= 0)
    different, num_excused, other_text = 0, 0, 0
    for text in texts:
        ids, expected = tokenizer(text)["input_ids"], bos + reference.encode(text)
        if ids != expected:
            num_excused += excused(text)
            different += not excused(text)
            if different <= 5 and not excused(text):
                print(f"  {name}: {text[:60]!r}: {ids[:12]} against {expected[:12]}")
        elif decodes and tokenizer.decode(ids, skip_special_tokens=True) != reference.decode(expected):
            other_text += reference.unk_id() not in expected  # "<unk>" or " ⁇ "
    print(f"tokenizer: {name} ({type(tokenizer).__name__}), {len(texts)} texts, {different} with other ids, "
          f"{other_text} decoded otherwise" + (f", {num_excused} excused" if num_excused else ""))
    return different + other_text


def check_tokenizer(arguments):
    model_path = Path(arguments.folder) / "tokenizer.model"
    if not model_path.exists():
        print("tokenizer: no tokenizer.model, nothing to compare")
        return True
    from sentencepiece import SentencePieceProcessor
    reference = SentencePieceProcessor(model_file=str(model_path))
    texts = AWKWARD_LINES + made_up_texts(2000)
    for path in arguments.text:
        text = Path(path).read_text(errors="replace")
        texts += text.splitlines(keepends=True) + [text]
    tokenizer = AutoTokenizer.from_pretrained(arguments.folder)
    wrong = compare("AutoTokenizer", tokenizer, reference, texts)
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    is_llama = (reference.bos_id(), reference.eos_id(), reference.unk_id()) == (1, 2, 0) \
        and parts["model"]["byte_fallback"] and not parts["pre_tokenizer"] \
        and reference.encode("  a  ") != reference.encode("a")
    for name in ("LlamaTokenizer", "LlamaTokenizerFast") if is_llama else ():
        named = getattr(transformers, name).from_pretrained(arguments.folder)
        wrong += compare(name, named, reference, texts, lambda text: text.startswith((" ", "▁")), decodes=False)
    ends = tokenizer.bos_token_id, tokenizer.eos_token_id
    expected_ends = tuple(id if id >= 0 else None for id in (reference.bos_id(), reference.eos_id()))
    print(f"tokenizer: bos and eos {ends}, SentencePiece's {expected_ends}; "
          f"vocabulary {len(tokenizer)} and {reference.vocab_size()}")
    return wrong == 0 and ends == expected_ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tokens")
    parser.add_argument("--logprobs")
    parser.add_argument("--tokenizer-only", action="store_true")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    if not arguments.tokenizer_only and not (arguments.tokens and arguments.logprobs):
        parser.error("expected --tokens and --logprobs, or --tokenizer-only")
    good = arguments.tokenizer_only or check_model(arguments)
    good = check_tokenizer(arguments) and good
    print("good" if good else "NOT good")
    sys.exit(0 if good else 1)


main()
