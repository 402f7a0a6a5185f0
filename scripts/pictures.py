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
import time
from pathlib import Path

from makers import MAKERS, REPEATABLE, ROOT, SKEIN, maker, run
from svg import AMBER, BLUE, FAINT, GRAY, GREEN, MUTED, RULE, Svg

FOLDER = ROOT / "docs/pictures"


@maker(repeatable=True)
def overview():
    svg = Svg(880, 286, "From text to a Hugging Face checkpoint",
              "Text is ingested into a corpus, which a tokenizer turns into lanes of tokens. A "
              "configuration becomes a model, passes make a graph of it, and a memory plan makes "
              "programs of that. Training runs the programs on the lanes and writes checkpoints, which "
              "are exported to Hugging Face.")
    left, width, height = 30, 117, 48
    step = 147  # from box to box
    first, second = 64, 204

    def panel(y, title):
        svg.rect(18, y, 581, 116, ("#ffffff", RULE), rx=8)
        svg.text(30, y + 21, title, "small muted")

    panel(first - 48, "data")
    panel(second - 48, "the plan: all of it before anything is allocated, for any number of ranks")
    data = [("text", "JSON, Parquet"), ("corpus", "one Arrow file"), ("lanes", "of token ids")]
    plan = [("configuration", "TOML"), ("model", "mathematics"), ("graph", "on the ranks"),
            ("programs", "kernel calls")]
    for y, colors, boxes, arrows in ((first + 4, GREEN, data, ["ingest", "tokenizer"]),
                                     (second + 4, BLUE, plan, ["", "passes", "memory"])):
        # Lanes stand above programs: both go into the run.
        places = [left + step * i for i in ((0, 1.5, 3) if len(boxes) == 3 else range(4))]
        for x, (label, below) in zip(places, boxes):
            svg.box(x, y, width, height, label, below, colors)
        for x, to, label in zip(places, places[1:], arrows):
            svg.arrow((x + width + 2, y + height / 2), (to - 2, y + height / 2))
            svg.text((x + width + to) / 2, y - 6, label, "small muted", "middle")

    end = left + 3 * step + width
    top, bottom = first + 4 + height / 2, second + 4 + height / 2
    svg.rect(632, first + 4, 66, second - first + height, AMBER)
    svg.text(665, (top + bottom) / 2 - 3, "run", "strong", "middle")
    svg.text(665, (top + bottom) / 2 + 15, "n workers", "small muted", "middle", room=66)
    svg.arrow((end + 2, top), (630, top))
    svg.arrow((end + 2, bottom), (630, bottom))

    svg.box(750, first + 4, 116, height, "checkpoints", "any layout", AMBER)
    svg.box(750, second + 4, 116, height, "Hugging Face", "a folder", GREEN)
    svg.arrow((700, top - 8), (748, top - 8))
    svg.arrow((748, top + 14), (700, top + 14), dashed=True)
    svg.text(724, top + 32, "resume", "small muted", "middle", room=52)
    svg.arrow((808, first + height + 6), (808, second + 2))
    svg.text(800, (top + bottom) / 2 + 4, "export", "small muted", "end")
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
    top, height = 62, 32
    svg = Svg(880, top + height * len(names) + 24, "The passes, in order",
              f"{', '.join(names)}: each takes a graph and leaves a graph; the last one leaves programs.")
    svg.text(24, 32, "model → programs", "strong")
    svg.text(176, 32, "each takes a graph and leaves a graph, verified behind it", "small muted", room=500)
    svg.text(856, 32, "dashed: where asked for", "small muted", "end", room=170)
    svg.path(f"M34 {top + 4} V{top + height * len(names) - 6}", RULE, 2)
    begin = top
    for i, (name, does) in enumerate(lines):
        y = top + height * i
        off = does.endswith("(off)")
        middle = y + height / 2 - 1
        svg.circle(34, middle, 11, RULE, 2)
        svg.text(34, middle + 4, str(i + 1), "small muted", "middle")
        svg.rect(56, y + 2, 160, height - 6, GRAY if off else BLUE, rx=5, dashed=off)
        svg.text(68, middle + 5, name, "mono", room=148)
        svg.text(232, middle + 5, does.removesuffix("(off)").rstrip(), room=460)
        if name in BEHIND:
            svg.path(f"M708 {begin + 3} H716 V{y + height - 5} H708", BLUE[1])
            svg.text(726, (begin + y + height) / 2 + 3, BEHIND[name], "small", room=880 - 726)
            begin = y + height
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

    svg = Svg(880, 470, "Eight ranks, a weight and an activation",
              "A mesh of 2 stages, 2 data ranks and 2 tensor ranks. Of a layer's weight each tensor rank "
              "has half of the rows, alike on both data ranks; of its input each data rank has half of "
              "the rows, alike on both tensor ranks.")
    svg.text(24, 32, "8 ranks: pp 2 × dp 2 × tp 2", "strong")
    svg.text(246, 32, "rank = 4 pp + 2 dp + tp; filled: the part that this rank has", "small muted")

    def matrix(x, y, width, height, colors, part=None):
        """A whole matrix, and in it the half of the rows that is there: part 0 or 1."""
        svg.rect(x, y, width, height, ("#ffffff", colors[1]), rx=2, dashed=True, stroke_width=1)
        if part is not None:
            half = height / 2
            svg.rect(x, y + part * half, width, half, (colors[1], colors[1]), rx=2, stroke_width=1)

    cell_width, cell_height, top = 162, 118, 108
    for pp in range(2):
        left = 76 + pp * 422
        svg.rect(left - 10, 52, 2 * cell_width + 32, 318, ("#ffffff", RULE), rx=8)
        svg.text(left, 72, f"stage pp = {pp}", "strong")
        svg.text(left + 104, 72, ["W and x of one layer", "later layers, each with its own"][pp],
                 "small muted")
        for tp in range(2):
            svg.text(left + tp * (cell_width + 12) + cell_width / 2, 98, f"tp = {tp}", "small muted",
                     "middle")
        for dp in range(2):
            if pp == 0:
                svg.text(58, top + dp * (cell_height + 12) + cell_height / 2 + 4, f"dp = {dp}",
                         "small muted", "end")
            for tp in range(2):
                x, y = left + tp * (cell_width + 12), top + dp * (cell_height + 12)
                svg.rect(x, y, cell_width, cell_height, GRAY)
                svg.text(x + 10, y + 20, f"rank {4 * pp + 2 * dp + tp}", "strong")
                mark = "′" if pp else ""
                for name, at, width, part, colors in (("W", 26, 42, tp, BLUE), ("x", 98, 36, dp, AMBER)):
                    matrix(x + at, y + 34, width, 56, FAINT if pp else colors, part)
                    svg.text(x + at + width / 2, y + 107, name + mark, "small strong", "middle",
                             fill=MUTED if pp else colors[1])
    middle = top + cell_height + 6
    svg.arrow((424, middle - 22), (486, middle - 22))
    svg.arrow((486, middle + 22), (424, middle + 22))
    svg.text(455, middle - 30, "outputs", "small muted", "middle")
    svg.text(455, middle + 40, "gradients", "small muted", "middle")
    svg.text(455, middle + 5, "r ↔ r + 4", "small", "middle")

    y = 396
    for i, (name, colors, (m, n, placed), says) in enumerate((
            ("W", BLUE, weight, "a weight: rows split over tp, {} a rank; both data ranks alike"),
            ("x", AMBER, rows, "its input: tokens split over dp, {} a rank; both tensor ranks alike"))):
        svg.rect(24, y + 24 * i - 11, 14, 14, (colors[1], colors[1]), rx=2)
        svg.text(48, y + 24 * i, f"{name} [{m}, {n}] {{{placed}}}", "mono", room=222)
        svg.text(272, y + 24 * i, says.format(m // 2), room=600)
    svg.text(24, y + 54, "So y = x Wᵀ {dp:S0 tp:S1} moves nothing; the gradient of W, {dp:P tp:S0}, is "
             "summed over dp once a step.", "small muted", room=850)
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
    svg = Svg(880, 432, "One curve",
              f"Loss over {CURVE_STEPS} steps of one worker, as a line, and of two data workers that were "
              f"killed at step {killed}, as dots on it. All losses are equal as bits.")
    left, right, top, bottom = 62, 856, 64, 318
    low, high = int(min(values.values()) * 2) / 2, int(max(values.values()) * 2 + 1) / 2

    def at(step, value):
        return (left + (right - left) * step / CURVE_STEPS,
                bottom - (bottom - top) * (value - low) / (high - low))

    svg.text(24, 32, "The same bits from one worker, and from two that were killed on the way", "strong")
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
    svg.text(to_x + 8, top + 14, f"kill -9 at step {killed}; the same command", "small", fill=AMBER[1])
    svg.text(to_x + 8, top + 30, f"resumes from the checkpoint of step {resumed}", "small", fill=AMBER[1])

    points = [at(step, value) for step, value in values.items()]
    svg.path("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points), BLUE[1], 3)
    for x, y in points:
        svg.circle(x, y, 2.1, AMBER[1])

    svg.path(f"M{right - 250} {top + 62} H{right - 222}", BLUE[1], 3)
    svg.text(right - 212, top + 66, "one worker", "small")
    for x in (right - 246, right - 236, right - 226):
        svg.circle(x, top + 82, 2.1, AMBER[1])
    svg.text(right - 212, top + 86, "two data workers, killed once", "small", room=212)

    layers = re.search(r"num_hidden_layers = (\d+)", CURVE_RUN)[1]
    svg.text(24, bottom + 62, f"{CURVE_STEPS} of {CURVE_STEPS} losses are equal as bits, and so are the "
             f"{killed - resumed} that were computed twice.", "small")
    svg.text(24, bottom + 80, f"A Llama of {layers} layers and {parameters / 1e3:.0f} k parameters, bf16-sr, "
             "trained on the pages of docs/ on a CPU.", "small muted", room=850)
    svg.text(24, bottom + 96, "Both runs have reduction_width = 2. Drawn by scripts/pictures.py same_curve "
             "from their metrics.jsonl.", "small muted", room=850)
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
