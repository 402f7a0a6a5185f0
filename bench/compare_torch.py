#!/usr/bin/env python3
"""PyTorch's side of bench/compare_torch.sh: trains a Llama on random tokens and prints its speed.

    compare_torch.py --mode eager|compile --size a|b [--sequences N] [--micro N] [--steps N] ...

Written for PyTorch's speed: bf16 weights, gradients and optimizer state (fewer bytes than Skein's,
which keeps moments in fp32 and rounds stochastically), one matrix for q, k, v and one for gate and
up, causal scaled_dot_product_attention, fused AdamW, gradient clipping. One line of JSON on
standard output; a model FLOP counts as in Skein: 6 per weight of a matrix and token, and causal
attention at half of T x T.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {
    "a": dict(hidden=512, layers=8, heads=8, inner=1408, vocab=4096, length=1024),
    "b": dict(hidden=768, layers=12, heads=12, inner=2048, vocab=32000, length=1024),
}


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Layer(nn.Module):
    def __init__(self, hidden, heads, inner):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.mlp_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = linear(hidden, 3 * hidden)
        self.out = linear(hidden, hidden)
        self.gate_up = linear(hidden, 2 * inner)
        self.down = linear(inner, hidden)

    def forward(self, x, cos, sin):
        batch, length, hidden = x.shape
        heads = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each [batch, heads, length, head_dim]
        attended = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, hidden))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, hidden, layers, heads, inner, vocab, length):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.head = linear(hidden, vocab)
        head_dim = hidden // heads
        frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
        angles = torch.arange(length)[:, None] * frequencies
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def flops_per_token(hidden, layers, heads, inner, vocab, length):
    matrices = layers * (4 * hidden * hidden + 3 * hidden * inner) + hidden * vocab
    return 6 * matrices + 6 * layers * hidden * length


def matmul_tflops(size, seconds=1.0):
    """The bf16 product of the size's gate and up projection, the best of repeated runs."""
    x = torch.randn(4096, size["hidden"], dtype=torch.bfloat16)
    w = torch.randn(2 * size["inner"], size["hidden"], dtype=torch.bfloat16)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        F.linear(x, w)
        best = min(best, time.perf_counter() - start)
    return 2 * x.shape[0] * x.shape[1] * w.shape[0] / best / 1e12


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--size", choices=SIZES, default="a")
    parser.add_argument("--sequences", type=int, default=8, help="per step")
    parser.add_argument("--micro", type=int, default=1, help="sequences per forward and backward")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.sequences % arguments.micro:
        parser.error("--micro must divide --sequences")
    return arguments


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    size = SIZES[arguments.size]
    model = Llama(**size)
    cos, sin = model.cos, model.sin
    model = model.bfloat16()
    model.cos, model.sin = cos.bfloat16(), sin.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-5,
                                  weight_decay=0.1, fused=True)
    forward = torch.compile(model) if arguments.mode == "compile" else model
    num_micro = arguments.sequences // arguments.micro
    window = torch.randint(0, size["vocab"], (num_micro, arguments.micro, size["length"] + 1))

    step_seconds = []
    for _ in range(arguments.warmup + arguments.steps):
        start = time.perf_counter()
        for tokens in window:
            loss = forward(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
            (loss / num_micro).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        step_seconds.append(time.perf_counter() - start)
    seconds = statistics.median(step_seconds[arguments.warmup:])

    tokens_per_s = arguments.sequences * size["length"] / seconds
    tflops = tokens_per_s * flops_per_token(**size) / 1e12
    ceiling = matmul_tflops(size)
    print(json.dumps({
        "program": f"torch {torch.__version__} {arguments.mode}", "size": arguments.size,
        "sequences": arguments.sequences, "micro": arguments.micro,
        "tokens_per_s": round(tokens_per_s, 1), "model_tflops": round(tflops, 4),
        "matmul_tflops": round(ceiling, 4), "share_of_matmul": round(tflops / ceiling, 4),
        "loss": round(loss.item(), 4)}))


main()
