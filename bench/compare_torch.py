#!/usr/bin/env python3
"""PyTorch's side of bench/compare_torch.sh and bench/compare_torch_gpu.sh: trains a Llama on random
tokens and prints its speed.

    compare_torch.py --mode eager|compile|layers|graphs --size tiny|a|b|0.5b|1b|7b
                     [--device cpu|cuda] [--dtype bf16|fp32] [--sequences N] [--micro N] ...
    compare_torch.py --describe       how this PyTorch was built, and what it takes of this CPU

Written for PyTorch's speed: weights, gradients and optimizer state in --dtype (in bf16 fewer bytes
than Skein's, which keeps moments in fp32 and rounds stochastically; fp32 is PyTorch's faster one on
a CPU without products of bf16), one matrix for q, k, v and one for gate and
up, causal scaled_dot_product_attention, fused AdamW, gradient clipping. `compile` compiles the
model as one, `layers` each layer (the same code for all: compiled in seconds, and as fast where
layers are large), `graphs` the model as one, with CUDA graphs. On a GPU attention is flash
attention or cuDNN's, whichever is faster at the size, tried before training. One line of JSON on
standard output; a model FLOP counts as in Skein: 6 per weight of a matrix and token, and causal
attention at half of T x T.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {
    "tiny": dict(hidden=64, layers=2, heads=4, kv_heads=2, inner=176, vocab=512, length=64),
    "a": dict(hidden=512, layers=8, heads=8, kv_heads=8, inner=1408, vocab=4096, length=1024),
    "b": dict(hidden=768, layers=12, heads=12, kv_heads=12, inner=2048, vocab=32000, length=1024),
    "0.5b": dict(hidden=1024, layers=24, heads=16, kv_heads=16, inner=4096, vocab=32000,
                 length=1024),
    "1b": dict(hidden=2048, layers=22, heads=32, kv_heads=4, inner=5632, vocab=32000, length=2048),
    "7b": dict(hidden=4096, layers=32, heads=32, kv_heads=32, inner=11008, vocab=32000,
               length=4096),
}


DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def attend(q, k, v):
    grouped = {} if q.shape[1] == k.shape[1] else {"enable_gqa": True}
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)


class Layer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, inner):
        super().__init__()
        self.split = (heads, kv_heads, kv_heads)
        self.attention_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.mlp_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = linear(hidden, hidden // heads * sum(self.split))
        self.out = linear(hidden, hidden)
        self.gate_up = linear(hidden, 2 * inner)
        self.down = linear(inner, hidden)

    def forward(self, x, cos, sin):
        batch, length, hidden = x.shape
        heads = self.qkv(self.attention_norm(x)).view(batch, length, sum(self.split), -1)
        q, k, v = heads.transpose(1, 2).split(self.split, dim=1)  # [batch, heads, length, head_dim]
        attended = attend(rotate(q, cos, sin), rotate(k, cos, sin), v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, hidden))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, hidden, layers, heads, kv_heads, inner, vocab, length):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, kv_heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.head = linear(hidden, vocab)
        head_dim = hidden // heads
        dims = torch.arange(0, head_dim, 2, dtype=torch.float32)
        positions = torch.arange(length, dtype=torch.float32)
        angles = positions[:, None] * 10000.0 ** (-dims / head_dim)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def loss(self, x, labels):
        logits = self.head(self.norm(x)).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.loss(x, labels)


def flops_per_token(hidden, layers, heads, kv_heads, inner, vocab, length):
    kv_size = hidden // heads * kv_heads
    per_layer = 2 * hidden * hidden + 2 * hidden * kv_size + 3 * hidden * inner
    return 6 * (layers * per_layer + hidden * vocab) + 6 * layers * hidden * length


class Stopwatch:
    """Seconds between marks; on a GPU of the GPU, which runs behind the host."""

    def __init__(self, device):
        self.cuda = device == "cuda"
        self.marks = []

    def mark(self):
        if self.cuda:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        pairs = list(zip(self.marks, self.marks[1:]))
        if not self.cuda:
            return [end - start for start, end in pairs]
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def matmul_tflops(size, device, dtype, seconds=1.0):
    """The best of repeated products: on a CPU of the size's gate and up projection, on a GPU
    of 8192 x 8192 x 8192."""
    rows, inputs, outputs = 4096, size["hidden"], 2 * size["inner"]
    if device == "cuda":
        rows = inputs = outputs = 8192
    x = torch.randn(rows, inputs, dtype=dtype, device=device)
    w = torch.randn(outputs, inputs, dtype=dtype, device=device)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        watch = Stopwatch(device)
        watch.mark()
        F.linear(x, w)
        watch.mark()
        best = min(best, watch.seconds()[0])
    return 2 * rows * inputs * outputs / best / 1e12


def attention_seconds(size, micro):
    head_dim = size["hidden"] // size["heads"]
    q, k, v = (torch.randn(micro, heads, size["length"], head_dim, dtype=torch.bfloat16,
                           device="cuda", requires_grad=True)
               for heads in (size["heads"], size["kv_heads"], size["kv_heads"]))
    grad = torch.randn_like(q)
    watch = Stopwatch("cuda")
    for _ in range(8):
        watch.mark()
        attend(q, k, v).backward(grad)
    watch.mark()
    return min(watch.seconds()[2:])


def fastest_attention(size, micro):
    """The name of the faster attention that this PyTorch and GPU have, and a context in which it is
    the one taken."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before 2.3
        return "default", contextlib.nullcontext()
    found = {}
    for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
        backend = getattr(SDPBackend, name, None)
        if backend is None:
            continue
        try:
            with sdpa_kernel(backend):
                found[name] = attention_seconds(size, micro)
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    if not found:
        return "default", contextlib.nullcontext()
    name = min(found, key=found.get)
    return name, sdpa_kernel(getattr(SDPBackend, name))


def compiled(model, mode):
    if mode == "compile":
        return torch.compile(model)
    if mode == "graphs":
        return torch.compile(model, mode="reduce-overhead")
    if mode == "layers":
        for layer in model.layers:
            layer.compile()
        model.loss = torch.compile(model.loss)
    return model


def describe():
    """What decides about PyTorch's speed on a CPU: libraries, flags and instruction sets."""
    settings = ("BLAS_INFO", "BUILD_TYPE", "COMMIT_SHA", "CXX_FLAGS", "LAPACK_INFO", "USE_MKL",
                "USE_MKLDNN", "USE_OPENMP")
    built = [line.strip(" -") for line in torch.__config__.show().splitlines()[1:]]
    found = {}
    for line in built:
        if not line.startswith("Build settings: "):
            continue
        pairs = (pair.partition("=") for pair in line.removeprefix("Build settings: ").split(", "))
        found = {key: value.strip() for key, _, value in pairs if key in settings}
    flags = found.get("CXX_FLAGS", "").split()
    found["CXX_FLAGS"] = " ".join(flag for flag in flags if not flag.startswith("-W"))
    return {"version": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability(),
            "built_with": [line for line in built if line and not line.startswith("Build settings")],
            "settings": found}


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--mode", choices=("eager", "compile", "layers", "graphs"), default="eager")
    parser.add_argument("--size", choices=SIZES, default="a")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--sequences", type=int, default=8, help="per step")
    parser.add_argument("--micro", type=int, default=1, help="sequences per forward and backward")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.sequences % arguments.micro:
        parser.error("--micro must divide --sequences")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("compare_torch.py: PyTorch sees no CUDA device")
    return arguments


def make_model(size, device, dtype):
    # Drawn in its dtype on a GPU: drawing 7 billion numbers in fp32 first would need the memory twice.
    torch.set_default_dtype(dtype if device == "cuda" else torch.float32)
    with torch.device(device):
        model = Llama(**size)
    torch.set_default_dtype(torch.float32)
    cos, sin = model.cos, model.sin
    model = model.to(dtype)
    model.cos, model.sin = cos.to(dtype), sin.to(dtype)
    return model


def main():
    arguments = parse_arguments()
    if arguments.describe:
        print(json.dumps(describe()))
        return
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    size, device = SIZES[arguments.size], arguments.device
    dtype, cuda = DTYPES[arguments.dtype], device == "cuda"
    attention, chosen = ("default", contextlib.nullcontext())
    if cuda:
        attention, chosen = fastest_attention(size, arguments.micro)
    model = make_model(size, device, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-5,
                                  weight_decay=0.1, fused=True)
    forward = compiled(model, arguments.mode)
    num_micro = arguments.sequences // arguments.micro
    window = torch.randint(0, size["vocab"], (num_micro, arguments.micro, size["length"] + 1),
                           device=device)

    # In place where graphs hold the addresses, and on a CPU, where fresh memory is slow.
    keeps_gradients = not cuda or arguments.mode == "graphs"
    if cuda and keeps_gradients:
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)

    watch = Stopwatch(device)
    with chosen:
        for _ in range(arguments.warmup + arguments.steps):
            watch.mark()
            for tokens in window:
                if arguments.mode == "graphs":
                    torch.compiler.cudagraph_mark_step_begin()
                loss = forward(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
                (loss / num_micro).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=not keeps_gradients)
        watch.mark()
    seconds = statistics.median(watch.seconds()[arguments.warmup:])

    tokens_per_s = arguments.sequences * size["length"] / seconds
    tflops = tokens_per_s * flops_per_token(**size) / 1e12
    result = {
        "program": f"torch {torch.__version__} {arguments.mode}", "size": arguments.size,
        "dtype": arguments.dtype, "threads": torch.get_num_threads(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "sequences": arguments.sequences, "micro": arguments.micro,
        "tokens_per_s": round(tokens_per_s, 1), "model_tflops": round(tflops, 4),
        "loss": round(loss.item(), 4)}
    if cuda:
        result |= {"attention": attention, "peak_bytes": torch.cuda.max_memory_allocated(),
                   "step_ms": round(seconds * 1e3, 3)}
        del model, optimizer, forward, loss
        torch.cuda.empty_cache()
    ceiling = matmul_tflops(size, device, dtype)
    result |= {"matmul_tflops": round(ceiling, 4), "share_of_matmul": round(tflops / ceiling, 4)}
    print(json.dumps(result))


main()
