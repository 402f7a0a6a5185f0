#!/usr/bin/env python3
"""Writes skein/optim/testdata/learning_rate.json: learning rates of torch's LambdaLR under
transformers' schedules, at last_epoch = step. Needs torch and transformers; no test runs this."""
import json
import pathlib

import torch
import transformers

PEAK = 3e-4


def rates(schedule, steps, **options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = schedule(optimizer, **options)
    rows = []
    for step in range(1, max(steps) + 1):
        optimizer.step()
        scheduler.step()
        if step in steps:
            rows.append([step, scheduler.get_last_lr()[0]])
    return rows


def case(decay, floor, warmup, constant, decay_steps, steps, schedule, **options):
    return {"decay": decay, "peak": PEAK, "floor": floor, "warmup_steps": warmup, "constant_steps": constant,
            "decay_steps": decay_steps, "schedule": schedule.__name__,
            "rates": rates(schedule, set(steps), **options)}


t = transformers
near = [1, 2, 5, 9, 10, 11, 12, 25, 40, 59, 60, 61, 85, 99, 108, 109, 110]
# The warm-up of this one starts from the floor, ours from zero: it is compared from its peak on.
late = [step for step in near if step >= 10] + [111, 500]
far = [1, 1000, 1999, 2000, 2001, 50000, 123457, 242000, 400000, 481999, 482000]
cases = [
    case("cosine", 0.0, 10, 0, 100, near, t.get_cosine_schedule_with_warmup,
         num_warmup_steps=10, num_training_steps=110),
    case("cosine", 3e-5, 10, 0, 100, near, t.get_cosine_with_min_lr_schedule_with_warmup,
         num_warmup_steps=10, num_training_steps=110, min_lr=3e-5),
    case("linear", 0.0, 10, 0, 100, near, t.get_linear_schedule_with_warmup,
         num_warmup_steps=10, num_training_steps=110),
    case("constant", 0.0, 10, 0, 100, near, t.get_constant_schedule_with_warmup, num_warmup_steps=10),
    case("cosine", 3e-5, 10, 50, 50, late, t.get_wsd_schedule,
         num_warmup_steps=10, num_stable_steps=50, num_decay_steps=50, min_lr_ratio=0.1),
    case("linear", 3e-5, 10, 50, 50, late, t.get_wsd_schedule,
         num_warmup_steps=10, num_stable_steps=50, num_decay_steps=50, min_lr_ratio=0.1, decay_type="linear"),
    case("cosine", 3e-5, 2000, 0, 480000, far, t.get_cosine_with_min_lr_schedule_with_warmup,
         num_warmup_steps=2000, num_training_steps=482000, min_lr=3e-5),
]
path = pathlib.Path(__file__).parents[2] / "skein/optim/testdata/learning_rate.json"
rows = ",\n".join(json.dumps(row) for row in cases)
path.write_text(f"[\n{rows}\n]\n")
