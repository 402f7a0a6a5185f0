"""Writes skein/checkpoint/format/testdata/golden.safetensors with the Python safetensors package.

    python scripts/goldens/safetensors_golden.py
"""

import pathlib

import torch
from safetensors.torch import save_file

ramp = torch.arange(6, dtype=torch.float32).reshape(2, 3) * 0.5 - 1
tensors = {
    "ramp.f32": ramp,
    "ramp.bf16": ramp.to(torch.bfloat16),
    "ramp.f16": ramp.to(torch.float16),
    "ramp.f64": ramp.to(torch.float64),
    "count.i64": torch.tensor([7, -8], dtype=torch.int64),
    "mask.bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 4),
}
root = pathlib.Path(__file__).resolve().parents[2]
path = root / "skein" / "checkpoint" / "format" / "testdata" / "golden.safetensors"
save_file(tensors, path, metadata={"format": "pt", "note": "a \"quoted\" naïve text"})
