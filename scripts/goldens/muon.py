#!/usr/bin/env python3
"""Makes muon.json beside tests/goldens/<family>/<case>/training.json: the losses and gradient norms of 100 steps
in which Muon, written plainly in torch, updates the matrices of the layers, and torch.optim.AdamW the rest.

    scripts/goldens/muon.py      needs torch (2.9 or later), transformers and safetensors

All numbers are float32; the rows, and AdamW's settings, are those of training.json. Prints how far the losses stray
when everything is computed in float64, and when torch.optim.Muon takes the place of the plain one: it makes matrices
orthogonal in bfloat16.
"""

import json

import torch
from decoders import NUM_STEPS, OPTIMIZER, batch_loss, float32_text, write_json
from pathlib import Path
from transformers import AutoModelForCausalLM

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "goldens"
CASES = ["llama/multi_head", "llama/tied_multi_query", "llama/biases_wide_heads_documents", "qwen3/tied_biases"]
MOMENTUM = 0.95


def orthogonal(matrix):
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


class PlainMuon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, weight_decay, momentum):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                average = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1 - group["momentum"])
                direction = weight.grad.lerp(average, group["momentum"])
                size = 0.2 * max(weight.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(orthogonal(direction), alpha=group["lr"] * size)


def torch_muon(parameters, lr, weight_decay, momentum):
    return torch.optim.Muon(parameters, lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=True,
                            ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5,
                            adjust_lr_fn="match_rms_adamw")


def train(folder, training, dtype, muon):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager")
    matrices = [p for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2]
    others = [p for name, p in model.named_parameters() if not (".layers." in name and p.ndim == 2)]
    optimizers = [
        muon(matrices, lr=OPTIMIZER["learning_rate"], weight_decay=OPTIMIZER["weight_decay"], momentum=MOMENTUM),
        torch.optim.AdamW(others, lr=OPTIMIZER["learning_rate"], eps=OPTIMIZER["epsilon"],
                          betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), weight_decay=OPTIMIZER["weight_decay"])]
    rows, per_step = training["rows"], training["rows_per_step"]
    losses, norms = [], []
    for step in range(NUM_STEPS):
        loss = batch_loss(model, [rows[(step * per_step + i) % len(rows)] for i in range(per_step)])
        model.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["clip_norm"]).item())
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses, norms


def stray(found, expected, count):
    return max(abs(a - b) / abs(b) for a, b in zip(found[:count], expected[:count]))


def main():
    for case in CASES:
        folder = GOLDENS / case
        training = json.loads((folder / "training.json").read_text())
        losses, norms = train(folder, training, torch.float32, PlainMuon)
        exact, exact_norms = train(folder, training, torch.float64, PlainMuon)
        rounded, _ = train(folder, training, torch.float32, torch_muon)
        write_json(folder / "muon.json", {"optimizer": {**OPTIMIZER, "momentum": MOMENTUM},
                                          "loss": float32_text(losses), "grad_norm": float32_text(norms)})
        print(f"{case}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; float32 against float64: loss "
              f"{stray(losses, exact, 20):.1e} in 20 steps, {stray(losses, exact, 100):.1e} in 100, norm "
              f"{stray(norms, exact_norms, 100):.1e}; torch.optim.Muon in bfloat16: loss "
              f"{stray(rounded, losses, 20):.1e}, {stray(rounded, losses, 100):.1e}")


main()
