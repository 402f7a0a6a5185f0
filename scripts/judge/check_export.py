#!/usr/bin/env python3
"""Judges an exported folder with transformers: does it load, and do the numbers agree?

    skein score --model HF_DIR --tokens TOKENS.json > LOGPROBS.json
    scripts/judge/check_export.py HF_DIR --tokens TOKENS.json --logprobs LOGPROBS.json
                                  [--text FILE]… [--tolerance 1e-4]

Log-probabilities: transformers in float32, eager attention, against `skein score`.
Tokenizer: the ids of AutoTokenizer against those of SentencePiece's own tokenizer.model, on a few
awkward lines and on the text files named. Needs torch, transformers, sentencepiece; run by hand.
Exit code 0: all agree; 1: something does not.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

AWKWARD_LINES = [
    "", " ", "  two  spaces ", "\ttab\n", "int main(void) { return 0; }\n", "naïve café — “quotes”",
    "日本語 русский العربية", "🙂👩‍👩‍👧", "1234567890", "a" * 300, "\r\nline\r\n", "<s> </s> <unk>", "\x00\x7f",
]


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
    result = []
    for tokens in sequences:
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0].float()
        table = torch.log_softmax(logits, -1)
        result.append([None] + [table[i - 1, tokens[i]].item() for i in range(1, len(tokens))])
    return result


def check_model(arguments):
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


def check_tokenizer(arguments):
    model_path = Path(arguments.folder) / "tokenizer.model"
    if not model_path.exists():
        print("tokenizer: no tokenizer.model, nothing to compare")
        return True
    from sentencepiece import SentencePieceProcessor
    reference = SentencePieceProcessor(model_file=str(model_path))
    tokenizer = AutoTokenizer.from_pretrained(arguments.folder)
    lines = list(AWKWARD_LINES)
    for path in arguments.text:
        lines += Path(path).read_text(errors="replace").splitlines(keepends=True)
    different = 0
    for line in lines:
        ids = tokenizer(line, add_special_tokens=False)["input_ids"]
        expected = reference.encode(line)
        # Special tokens written out in a text are symbols to one and characters to the other.
        if ids != expected and not any(token in line for token in tokenizer.all_special_tokens):
            different += 1
            if different <= 5:
                print(f"  {line[:60]!r}: {ids[:12]} against {expected[:12]}")
    ends = tokenizer.bos_token_id, tokenizer.eos_token_id
    expected_ends = reference.bos_id(), reference.eos_id()
    print(f"tokenizer: {type(tokenizer).__name__}, {len(lines)} lines, {different} different; "
          f"bos and eos {ends}, SentencePiece's {expected_ends}; "
          f"vocabulary {len(tokenizer)} and {reference.vocab_size()}")
    return different == 0 and ends == expected_ends


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--logprobs", required=True)
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    good = check_model(arguments)
    good = check_tokenizer(arguments) and good
    print("good" if good else "NOT good")
    sys.exit(0 if good else 1)


main()
