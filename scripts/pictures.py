#!/usr/bin/env python3
"""Draws the pictures of README.md and docs/ into docs/pictures/, as SVG.

  scripts/pictures.py [NAME…]     draws the pictures of these names, or all of them (a minute: one
                                  of them trains)
  scripts/pictures.py --check     draws those that are the same at every run, and fails where the
                                  file says something else; writes nothing

A function of this file that is called NAME draws docs/pictures/NAME.svg. build/skein must be built:
what a picture says of the program comes from it, where the program says it.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from makers import MAKERS, REPEATABLE, ROOT, SKEIN, maker, run
from svg import AMBER, BLUE, FAINT, GRAY, GREEN, MUTED, RULE, Svg

FOLDER = ROOT / "docs/pictures"


@maker(repeatable=True)
def overview():
    svg = Svg(520, "From text to a Hugging Face checkpoint",
              "Text is ingested into a corpus, which a tokenizer turns into lanes of tokens. A "
              "configuration becomes a model, passes make a graph of it, and a memory plan makes "
              "programs of that. Training runs the programs on the lanes and writes checkpoints, which "
              "are exported to Hugging Face.")
    top, width, height, step = 68, 160, 44, 70  # from box to box
    end = top + 3 * step + height
    columns = ((18, ["data"], GREEN, ["ingest", "tokenizer"],
                [("text", "JSON, Parquet"), ("corpus", "one Arrow file"), ("lanes", "of token ids")]),
               (270, ["the plan: before allocation,", "for any number of ranks"], BLUE,
                ["", "passes", "memory"],
                [("configuration", "TOML"), ("model", "mathematics"), ("graph", "on the ranks"),
                 ("programs", "kernel calls")]))
    run_top = end + 40
    for left, title, colors, arrows, boxes in columns:
        svg.rect(left, 18, 232, end - 2, ("#ffffff", RULE), rx=8)
        for i, line in enumerate(title):
            svg.text(left + 12, 38 + 16 * i, line, "small muted", room=220)
        x, middle = left + 36, left + 36 + width / 2
        # Lanes stand beside programs: both go into the run.
        places = [top + step * i for i in ((0, 1.5, 3) if len(boxes) == 3 else range(4))]
        for y, (label, below) in zip(places, boxes):
            svg.box(x, y, width, height, label, below, colors)
        for y, to, label in zip(places, places[1:], arrows):
            svg.arrow((middle, y + height + 2), (middle, to - 2))
            svg.text(middle + 12, (y + height + to) / 2 + 4, label, "small muted")
        svg.arrow((middle, end + 2), (middle, run_top - 2))
    svg.box(18, run_top, 484, height, "run", "n workers", AMBER)

    y = run_top + height + 40
    svg.box(54, y, width, height, "checkpoints", "any layout", AMBER)
    svg.box(306, y, width, height, "Hugging Face", "a folder", GREEN)
    svg.arrow((122, run_top + height + 2), (122, y - 2))
    svg.arrow((146, y - 2), (146, run_top + height + 2), dashed=True)
    svg.text(156, y - 15, "resume", "small muted")
    svg.arrow((216, y + height / 2), (304, y + height / 2))
    svg.text(260, y + height / 2 - 8, "export", "small muted", "middle", room=84)
    return svg


# What lies on the table behind a pass.
BEHIND = {
    "build_decoder": "plain mathematics",
    "shard": "placed on the ranks",
    "take_stage": "forward, backward",
    "overlap": "and the update",
    "plan_memory": "programs, arenas",
}


@maker(repeatable=True)
def passes():
    printed = run(SKEIN, "plan", "configs/llama2-7b-trn1-4096.toml", "--ranks", "4096", "--passes")
    lines = [line.split(None, 1) for line in printed.splitlines()]
    names = [name for name, _ in lines]
    if unknown := BEHIND.keys() - set(names):
        sys.exit(f"pictures: there is no pass {', '.join(sorted(unknown))}: see BEHIND in scripts/pictures.py")
    top, height, behind = 66, 38, 26
    svg = Svg(top + height * len(names) + behind * len(BEHIND) + 10, "The passes, in order",
              f"{', '.join(names)}: each takes a graph and leaves a graph; the last one leaves programs.")
    svg.text(24, 30, "model → programs", "strong")
    svg.text(24, 50, "each leaves a graph, which is verified", "small muted", room=300)
    svg.text(496, 50, "dashed: if asked for", "small muted", "end", room=170)
    y = top
    for i, (name, does) in enumerate(lines):
        off = does.endswith("(off)")
        middle = y + height / 2 - 1
        if i > 0:
            svg.path(f"M34 {y - 7} V{middle - 11}", RULE, 2)
        svg.circle(34, middle, 11, RULE, 2)
        svg.text(34, middle + 4, str(i + 1), "small muted", "middle")
        svg.rect(56, y + 4, 160, height - 10, GRAY if off else BLUE, rx=5, dashed=off)
        svg.text(68, middle + 5, name, "mono", room=148)
        said = textwrap.wrap(does.removesuffix("(off)").rstrip().replace("ZeRO ", "ZeRO\u00a0"), 37)
        for j, line in enumerate(said):
            svg.text(228, middle + 4 + 15 * (j - (len(said) - 1) / 2), line, "small", room=280)
        y += height
        if name in BEHIND:
            svg.text(56, y + 11, f"→ {BEHIND[name]}", "small strong", room=440, fill=BLUE[1])
            if name != names[-1]:
                svg.path(f"M34 {middle + 12} V{y + behind - 7}", RULE, 2)
            y += behind
    return svg


def type_of(value, text):
    """Shape and placements of a value in what --print-after prints, as `[11008, 4096]`, `tp:S0`."""
    found = re.search(rf"^(?:parameter |  ){re.escape(value)} .*?"
                      r": \w+\[(\d+), (\d+)\]\{([^}]*)\}", text, re.M)
    if not found:
        sys.exit(f"pictures: skein plan prints no {value}")
    return int(found[1]), int(found[2]), found[3]


@maker(repeatable=True)
def mesh():
    degrees = [part for axis in ("data", "tensor", "pipeline") for part in ("--set", f"parallel.{axis}=2")]
    printed = run(SKEIN, "plan", "configs/llama2-7b-trn1-4096.toml", "--ranks", "8", *degrees,
                  "--print-after", "shard")
    if "mesh pp=2 dp=2 cp=1 tp=2" not in printed:
        sys.exit("pictures: the mesh of 8 ranks is not 2 x 2 x 2")
    weight = type_of("model.layers.0.mlp.gate_proj.weight", printed)
    rows = type_of("l0.mlp_norm.tp.R", printed)
    if (weight[2], rows[2]) != ("tp:S0", "dp:S0"):
        sys.exit(f"pictures: the weight is {{{weight[2]}}} and its input {{{rows[2]}}}: expected tp:S0 "
                 "and dp:S0, which the picture shows")

    svg = Svg(888, "Eight ranks, a weight and an activation",
              "A mesh of 2 stages, 2 data ranks and 2 tensor ranks. Of a layer's weight each tensor rank "
              "has half of the rows, alike on both data ranks; of its input each data rank has half of "
              "the rows, alike on both tensor ranks.")
    svg.text(24, 32, "8 ranks: pp 2 × dp 2 × tp 2", "strong")
    svg.text(24, 52, "rank = 4 pp + 2 dp + tp; filled: the part that this rank has", "small muted", room=480)

    def matrix(x, y, width, height, colors, part=None):
        """A whole matrix, and in it the half of the rows that is there: part 0 or 1."""
        svg.rect(x, y, width, height, ("#ffffff", colors[1]), rx=2, dashed=True, stroke_width=1)
        if part is not None:
            half = height / 2
            svg.rect(x, y + part * half, width, half, (colors[1], colors[1]), rx=2, stroke_width=1)

    left, cell_width, cell_height, stage_height = 84, 194, 118, 310
    tops = [70 + pp * (stage_height + 56) for pp in range(2)]
    for pp, stage in enumerate(tops):
        svg.rect(24, stage, 472, stage_height, ("#ffffff", RULE), rx=8)
        svg.text(36, stage + 22, f"stage pp = {pp}", "strong")
        svg.text(142, stage + 22, ["W and x of one layer", "later layers, each with its own"][pp], "small muted")
        for tp in range(2):
            svg.text(left + tp * (cell_width + 12) + cell_width / 2, stage + 44, f"tp = {tp}", "small muted",
                     "middle")
        for dp in range(2):
            y = stage + 52 + dp * (cell_height + 12)
            svg.text(76, y + cell_height / 2 + 4, f"dp = {dp}", "small muted", "end")
            for tp in range(2):
                x = left + tp * (cell_width + 12)
                svg.rect(x, y, cell_width, cell_height, GRAY)
                svg.text(x + 10, y + 20, f"rank {4 * pp + 2 * dp + tp}", "strong")
                mark = "′" if pp else ""
                for name, at, width, part, colors in (("W", 42, 42, tp, BLUE), ("x", 114, 36, dp, AMBER)):
                    matrix(x + at, y + 34, width, 56, FAINT if pp else colors, part)
                    svg.text(x + at + width / 2, y + 107, name + mark, "small strong", "middle",
                             fill=MUTED if pp else colors[1])
    between = tops[0] + stage_height
    svg.arrow((230, between + 4), (230, tops[1] - 4))
    svg.arrow((290, tops[1] - 4), (290, between + 4))
    svg.text(220, between + 32, "outputs", "small muted", "end")
    svg.text(300, between + 32, "gradients, r ↔ r + 4", "small muted")

    y = tops[1] + stage_height + 28
    for i, (name, colors, (m, n, placed), says) in enumerate((
            ("W", BLUE, weight, "a weight: rows split over tp, {} each; data ranks alike"),
            ("x", AMBER, rows, "its input: tokens split over dp, {} each; tensor ranks alike"))):
        svg.rect(24, y + 40 * i - 11, 14, 14, (colors[1], colors[1]), rx=2)
        svg.text(48, y + 40 * i, f"{name} [{m}, {n}] {{{placed}}}", "mono", room=222)
        svg.text(48, y + 40 * i + 17, says.format(m // 2), "small", room=460)
    for i, line in enumerate(("So y = x Wᵀ {dp:S0 tp:S1} moves nothing; the gradient of W,",
                              "{dp:P tp:S0}, is summed over dp once a step.")):
        svg.text(24, y + 84 + 16 * i, line, "small muted", room=496)
    return svg


CURVE_STEPS, CURVE_CHECKPOINTS, KILL_AFTER = 200, 40, 109
CURVE_RUN = f"""
[run]
steps = {CURVE_STEPS}
[model]
hidden_size = 96
intermediate_size = 256
num_hidden_layers = 4
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 128
tie_word_embeddings = true
[data]
train = "corpus.arrow"
tokenizer = "tokenizer"
sequence_length = 128
[batch]
global_sequences = 8
micro_sequences = 2
[optimizer]
learning_rate = 2e-3
min_learning_rate = 2e-4
warmup_steps = 20
decay_steps = 180
[parallel]
reduction_width = 2
[device]
threads = 1
[checkpoint]
every_steps = {CURVE_CHECKPOINTS}
"""


def losses_of(metrics):
    """Every (step, loss) that a run wrote, as the text that stands there: the fewest digits that read
    back to the same bits."""
    text = metrics.read_text() if metrics.exists() else ""
    found = re.findall(r'^{"step": (\d+), "loss": ([^,]+),.*}$', text, re.M)
    return [(int(step), loss) for step, loss in found]


def train_and_kill(folder, *arguments):
    """Trains until some steps behind a checkpoint, kills it there with SIGKILL; the last step."""
    metrics = folder / "two/metrics.jsonl"
    with open(folder / "two.log", "wb") as log:
        training = subprocess.Popen(arguments, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            while not (losses := losses_of(metrics)) or losses[-1][0] < KILL_AFTER:
                if training.poll() is not None:
                    sys.exit(f"pictures: it ended before it was killed:\n{(folder / 'two.log').read_text()}")
                time.sleep(0.002)
        finally:
            training.kill()
            training.wait()
    time.sleep(1)  # its workers die with it
    return losses_of(metrics)[-1][0]


@maker(repeatable=False)
def same_curve():
    folder = Path(tempfile.mkdtemp(prefix="skein-pictures-"))
    try:
        (folder / "text").mkdir()
        for page in sorted((ROOT / "docs").glob("*.md")):
            shutil.copy(page, folder / "text")
        (folder / "run.toml").write_text(CURVE_RUN)
        run(SKEIN, "data", "ingest", "--out", "corpus.arrow", "text", cwd=folder)
        run(SKEIN, "data", "tokenizer", "--vocab-size", "1024", "--out", "tokenizer", "corpus.arrow",
            cwd=folder)
        train = (SKEIN, "train", "run.toml", "--set")
        run(*train, "run.dir=one", cwd=folder)
        two = (*train, "run.dir=two", "--set", "launch.workers=2")
        killed = train_and_kill(folder, *two)
        run(*two, cwd=folder)
        plan = json.loads(run(SKEIN, "plan", "run.toml", "--json", cwd=folder))
        one, two = losses_of(folder / "one/metrics.jsonl"), losses_of(folder / "two/metrics.jsonl")
    finally:
        shutil.rmtree(folder)

    # Steps that the second run did again stand there twice: each line must agree.
    wanted = dict(one)
    if list(wanted) != list(range(1, CURVE_STEPS + 1)) or wanted.keys() != dict(two).keys():
        sys.exit(f"pictures: {len(wanted)} and {len(dict(two))} steps: expected {CURVE_STEPS}")
    unlike = [f"step {step}: {loss}, one worker {wanted[step]}" for step, loss in two if loss != wanted[step]]
    if unlike:
        sys.exit("pictures: the losses differ\n" + "\n".join(unlike[:5]))
    again = len(two) - len(wanted)
    resumed = killed - again
    if not 0 < again < CURVE_CHECKPOINTS:
        sys.exit(f"pictures: {again} steps were done again: expected some, and fewer than "
                 f"{CURVE_CHECKPOINTS}")
    return curve(wanted, killed, resumed, plan["parameters"])


def curve(losses, killed, resumed, parameters):
    values = {step: float(loss) for step, loss in losses.items()}
    svg = Svg(508, "One curve",
              f"Loss over {CURVE_STEPS} steps of one worker, as a line, and of two data workers that were "
              f"killed at step {killed}, as dots on it. All losses are equal as bits.")
    left, right, top, bottom = 46, 500, 84, 338
    low, high = int(min(values.values()) * 2) / 2, int(max(values.values()) * 2 + 1) / 2

    def at(step, value):
        return (left + (right - left) * step / CURVE_STEPS,
                bottom - (bottom - top) * (value - low) / (high - low))

    svg.text(24, 30, "The same bits from one worker,", "strong")
    svg.text(24, 48, "and from two that were killed on the way", "strong")
    value = low
    while value <= high:
        y = at(0, value)[1]
        svg.path(f"M{left} {y:.1f} H{right}", RULE, 1)
        svg.text(left - 8, y + 4, f"{value:g}", "small muted", "end")
        value += 0.5 if high - low <= 3 else 1
    svg.text(left - 8, top - 12, "loss", "small muted", "end")
    for step in range(0, CURVE_STEPS + 1, 40):
        svg.text(at(step, low)[0], bottom + 18, str(step), "small muted", "middle")
    svg.text((left + right) / 2, bottom + 34, "step", "small muted", "middle")

    from_x, to_x = at(resumed, low)[0], at(killed, low)[0]
    svg.lines.append(f'<rect x="{from_x:.1f}" y="{top}" width="{to_x - from_x:.1f}" height="{bottom - top}" '
                     f'fill="{AMBER[0]}" opacity="0.7"/>')
    svg.path(f"M{to_x:.1f} {top} V{bottom}", AMBER[1], 1.5, dashed=True)
    for i, line in enumerate((f"kill -9 at step {killed};", "the same command resumes",
                              "from the checkpoint of", f"step {resumed}")):
        svg.text(to_x + 8, top + 14 + 16 * i, line, "small", fill=AMBER[1], room=right + 18 - to_x)

    points = [at(step, value) for step, value in values.items()]
    svg.path("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points), BLUE[1], 3)
    for x, y in points:
        svg.circle(x, y, 2.1, AMBER[1])

    legend = to_x + 8
    svg.path(f"M{legend:.1f} {top + 90} h28", BLUE[1], 3)
    svg.text(legend + 36, top + 94, "one worker", "small")
    for x in (legend + 4, legend + 14, legend + 24):
        svg.circle(x, top + 110, 2.1, AMBER[1])
    svg.text(legend + 36, top + 114, "two, killed once", "small", room=right + 18 - legend - 36)

    layers = re.search(r"num_hidden_layers = (\d+)", CURVE_RUN)[1]
    for i, line in enumerate((
            f"{CURVE_STEPS} of {CURVE_STEPS} losses are equal as bits,",
            f"and so are the {killed - resumed} that were computed twice.",
            f"A Llama of {layers} layers and {parameters / 1e3:.0f} k parameters, bf16-sr,",
            "trained on the pages of docs/ on a CPU.",
            "Two data workers; both runs have reduction_width = 2.",
            "Drawn by scripts/pictures.py same_curve from their metrics.jsonl.")):
        svg.text(24, bottom + 64 + 18 * i, line, "small" if i < 2 else "small muted", room=496)
    return svg


def main():
    check = sys.argv[1:] == ["--check"]
    wanted = sys.argv[1:] if sys.argv[1:] and not check else list(MAKERS)
    stale = []
    for name in wanted:
        if name not in MAKERS:
            sys.exit(f"pictures: there is no picture {name}: expected {', '.join(MAKERS)}")
        if check and name not in REPEATABLE:
            continue
        path, new = FOLDER / f"{name}.svg", str(MAKERS[name]())
        if check and not (path.exists() and path.read_text() == new):
            stale.append(name)
        elif not check:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(new)
    if stale:
        sys.exit(f"pictures: {', '.join(stale)} out of date: run scripts/pictures.py {' '.join(stale)}")


main()
