#!/usr/bin/env python3
"""Whether several back ends train a model of the same quality: one run goes on on each of them, from one checkpoint and
on the same rows, and every loss on the hold-out must agree.

  scripts/same_quality.py [--back-ends cpu pjrt emulated-cuda] [--steps 200] [--start 20] [--every 20] [--limit 0.001]
                          [--model small|demo] [--precision fp32 bf16-sr] [--fault KEY=VALUE] [--text PATH]
                          [--picture FILE.svg] [--folder DIR]

cpu            the kernels of the CPU: what the others are compared with, whichever is named first
pjrt           XLA's CPU, through the plugin that scripts/test_tools.sh unpacked
emulated-cuda  the kernels of the GPU, computed on a CPU (docs/emulation.md); slow, so take the small model
cuda           a GPU, with a build that has CUDA

The first START steps run on the first back end. Printed, for each precision: the loss on the hold-out every EVERY
steps, and the largest relative difference from the first back end. Exit code 1 where it is LIMIT or more, 2 where a
run fails.
`--fault` changes a setting of the last back end, to see that a difference is found.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from svg import AMBER, BLUE, GREEN, RULE, Svg

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SKEIN_BUILD", ROOT / "build"))
# Of the curves, the widest below.
COLORS, WIDTHS = ("#b6e3ff", BLUE[1], AMBER[1], GREEN[1]), (12, 6, 2.5, 1)
# How wide, with what vocabulary and rows; the model of configs/demo.toml, and one for the emulation.
MODELS = {
    "demo": dict(hidden=384, layers=6, heads=6, kv_heads=2, inner=896, vocabulary=4096, row=512, rows=8, micro=4),
    "small": dict(hidden=64, layers=2, heads=4, kv_heads=2, inner=176, vocabulary=512, row=64, rows=8, micro=4),
}
CONFIG = """
[model]
hf_config = "model.json"
[data]
train = "corpus.arrow"
validation = "validation.arrow"
tokenizer = "tokenizer"
sequence_length = {row}
[batch]
global_sequences = {rows}
micro_sequences = {micro}
[optimizer]
learning_rate = 2e-3
min_learning_rate = 2e-4
warmup_steps = 20
decay_steps = {decay}
[checkpoint]
every_steps = 0
[log]
tensorboard = false
[validate]
every_steps = {every}
batches = 20
"""


def stop(what):
    print(f"same_quality: {what}", file=sys.stderr)
    sys.exit(2)


def run(command, folder):
    done = subprocess.run([str(part) for part in command], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        stop(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-3000:]}")


def plugin():
    found = sorted(glob.glob(str(ROOT / ".deps/lammps-jax-pjrt-cpu-plugin-*/*/*.so")))
    return found[-1] if found else stop("no PJRT plugin: scripts/test_tools.sh unpacks one")


def of_back_end(name):
    """The program and the settings of a back end."""
    if name == "emulated-cuda":
        return BUILD / "skein_on_emulated_cuda", ["device.kind=cuda"]
    if name == "pjrt":
        return BUILD / "skein", ["device.kind=pjrt", f"device.pjrt_plugin={plugin()}"]
    return BUILD / "skein", [f"device.kind={name}"]


def prepare(folder, args):
    model = MODELS[args.model]
    skein = BUILD / "skein"
    run([skein, "data", "ingest", "--out", "corpus.arrow", "--validation-out", "validation.arrow",
         "--validation-fraction", "0.05", args.text], folder)
    run([skein, "data", "tokenizer", "--vocab-size", model["vocabulary"], "--out", "tokenizer", "corpus.arrow"], folder)
    (folder / "model.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": model["hidden"], "num_hidden_layers": model["layers"], "num_attention_heads": model["heads"],
        "num_key_value_heads": model["kv_heads"], "intermediate_size": model["inner"], "vocab_size": model["vocabulary"],
        "max_position_embeddings": model["row"], "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}))
    (folder / "run.toml").write_text(CONFIG.format(**model, decay=args.steps, every=args.every))


def train(folder, name, back_end, precision, steps, more=()):
    program, settings = of_back_end(back_end)
    settings = [*settings, f"precision.mode={precision}", f"run.dir={name}", f"run.steps={steps}", *more]
    run([program, "train", "run.toml", *(part for setting in settings for part in ("--set", setting))], folder)


def losses(folder, name):
    found = {}
    for line in (folder / name / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "validation":
            found[event["step"]] = event["loss"]
    return found


def curves_of(folder, precision, args):
    """Losses on the hold-out by step, of each back end."""
    start = f"{precision}-start"
    train(folder, start, args.back_ends[0], precision, args.start)
    curves = {}
    for back_end in args.back_ends:
        name = f"{precision}-{back_end}"
        shutil.copytree(folder / start, folder / name)
        is_last = back_end == args.back_ends[-1]
        train(folder, name, back_end, precision, args.steps, [args.fault] if args.fault and is_last else [])
        curves[back_end] = {step: loss for step, loss in losses(folder, name).items() if step > args.start}
    return curves


def largest_difference(curves, first):
    return max(abs(loss / curves[first][step] - 1) for curve in curves.values() for step, loss in curve.items())


def print_table(precision, curves, first):
    print(f"\n{precision}\n\n| step | " + " | ".join(curves) + " | largest difference |")
    print("|--:|" + "--:|" * (len(curves) + 1))
    for step in curves[first]:
        at = {name: curve[step] for name, curve in curves.items()}
        most = max(abs(loss / at[first] - 1) for loss in at.values())
        print(f"| {step} | " + " | ".join(f"{loss:.5f}" for loss in at.values()) + f" | {most:.1e} |")


def draw(all_curves, args, differences):
    svg = Svg(210 * len(all_curves) + 96, "The same quality on every back end",
              f"The loss on the hold-out over steps, of {', '.join(args.back_ends)}; the curves lie over each other.")
    svg.text(24, 28, "Loss on the hold-out, from one checkpoint on the same rows", "strong")
    for i, name in enumerate(args.back_ends):
        svg.path(f"M{24 + 124 * i} 46 h22", COLORS[i], WIDTHS[i])
        svg.text(50 + 124 * i, 50, name, "small", room=104)
    left, right = 52, 500
    for row, (precision, curves) in enumerate(all_curves.items()):
        top = 84 + 210 * row
        bottom = top + 140
        values = [loss for curve in curves.values() for loss in curve.values()]
        low, high = min(values), max(values)
        steps = list(curves[args.back_ends[0]])
        svg.text(left, top - 8, f"{precision}: largest relative difference {differences[precision]:.1e}", "small muted")
        for part in range(5):
            value = low + (high - low) * part / 4
            y = bottom - (bottom - top) * part / 4
            svg.path(f"M{left} {y:.1f} H{right}", RULE, 1)
            svg.text(left - 6, y + 4, f"{value:.2f}", "small muted", "end")
        for i, (name, curve) in enumerate(curves.items()):
            points = [(left + (right - left) * (step - steps[0]) / max(steps[-1] - steps[0], 1),
                       bottom - (bottom - top) * (loss - low) / max(high - low, 1e-9)) for step, loss in curve.items()]
            svg.path("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points), COLORS[i], WIDTHS[i])
        svg.text(left, bottom + 18, str(steps[0]), "small muted")
        svg.text(right, bottom + 18, f"step {steps[-1]}", "small muted", "end")
    svg.text(24, svg.height - 16, "Drawn by scripts/same_quality.py", "small muted")
    Path(args.picture).write_text(str(svg))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--back-ends", nargs="+", default=["cpu", "pjrt"],
                        choices=["cpu", "pjrt", "emulated-cuda", "cuda"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--start", type=int, default=20)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--limit", type=float, default=0.001)
    parser.add_argument("--model", choices=MODELS, default="demo")
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16-sr"])
    parser.add_argument("--fault", default="")
    parser.add_argument("--text", default="/usr/include/c++")
    parser.add_argument("--picture")
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    if len(args.back_ends) < 2 or len(set(args.back_ends)) < len(args.back_ends):
        parser.error("--back-ends: expected two or more, each once")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        args.text = Path(args.text).resolve()
        prepare(folder, args)
        all_curves = {precision: curves_of(folder, precision, args) for precision in args.precision}
    first = args.back_ends[0]
    for precision, curves in all_curves.items():
        if any(curve.keys() != curves[first].keys() or not curve for curve in curves.values()):
            stop(f"{precision}: the back ends have losses of different steps: {({n: len(c) for n, c in curves.items()})}")
        print_table(precision, curves, first)
    differences = {precision: largest_difference(curves, first) for precision, curves in all_curves.items()}
    if args.picture:
        draw(all_curves, args, differences)
    print()
    for precision, difference in differences.items():
        print(f"{precision}: largest relative difference of the loss on the hold-out {difference:.1e}, limit {args.limit:.0e}")
    sys.exit(1 if any(not difference < args.limit for difference in differences.values()) else 0)


if __name__ == "__main__":
    main()
