#!/usr/bin/env python3
"""Writes skein/infer/testdata/sampling.json: what transformers' logits processors make of logits.

    python3 -m venv DIR && DIR/bin/pip install torch transformers==5.24.0
    DIR/bin/python scripts/goldens/sampling.py

Each case has the options, the tokens before, the logits, and the probabilities after transformers'
processors in the order in which its generation applies them.
"""
import json
import pathlib
import random

import torch
from transformers import LogitsProcessorList
from transformers.generation.logits_process import (MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                                                    TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

OUT = pathlib.Path(__file__).resolve().parents[2] / "skein/infer/testdata/sampling.json"


def processors(case):
    chosen = LogitsProcessorList()
    if case["repetition_penalty"] != 1:
        chosen.append(RepetitionPenaltyLogitsProcessor(case["repetition_penalty"]))
    chosen.append(TemperatureLogitsWarper(case["temperature"]))
    if case["top_k"]:
        chosen.append(TopKLogitsWarper(case["top_k"]))
    if case["top_p"] < 1:
        chosen.append(TopPLogitsWarper(case["top_p"]))
    if case["min_p"] > 0:
        chosen.append(MinPLogitsWarper(case["min_p"]))
    return chosen


def main():
    draw = random.Random(7)
    cases = []
    for index in range(60):
        case = {
            "temperature": draw.choice([0.3, 0.7, 1.0, 1.6]),
            "top_k": draw.choice([0, 0, 1, 3, 20]),
            "top_p": draw.choice([1.0, 1.0, 0.5, 0.9, 0.97]),
            "min_p": draw.choice([0.0, 0.0, 0.05, 0.3]),
            "repetition_penalty": draw.choice([1.0, 1.0, 1.3, 0.8]),
            "tokens": [draw.randrange(24) for _ in range(draw.randrange(1, 9))],
            "logits": [round(draw.gauss(0, 2), 3) for _ in range(24)],
        }
        logits = torch.tensor([case["logits"]], dtype=torch.float64)
        made = processors(case)(torch.tensor([case["tokens"]]), logits)
        case["probabilities"] = [round(p, 9) for p in torch.softmax(made, -1)[0].tolist()]
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases in {OUT.relative_to(OUT.parents[3])}")


if __name__ == "__main__":
    main()
