#!/usr/bin/env python3
"""Makes every transcript in README.md and docs/ from what the program prints.

  scripts/transcripts.py [NAME…]     writes the blocks of these names, or all of them (minutes: it
                                     runs the demo)
  scripts/transcripts.py --check     makes those that are the same at every run again, and fails
                                     where the page says something else; writes nothing

A block stands between <!-- transcript: begin NAME --> and <!-- transcript: end -->; a function of
this file that is called NAME makes its lines. build/skein must be built.
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

BLOCK = re.compile(r"(<!-- transcript: begin (\w+) -->\n)(.*?)(<!-- transcript: end -->)", re.S)


def fenced(text):
    return f"\n```\n{text.strip()}\n```\n\n"


def thin_out(lines, is_repeated, keep):
    """Of the lines that look alike, `keep` at even distances; an ellipsis where others were."""
    places = [i for i, line in enumerate(lines) if is_repeated(line)]
    if len(places) <= keep:
        return lines
    kept = {places[round(k * (len(places) - 1) / (keep - 1))] for k in range(keep)}
    result = []
    for i, line in enumerate(lines):
        if i not in places or i in kept:
            result.append(line)
        elif result[-1] != "…":
            result.append("…")
    return result


def cpu():
    name = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M).group(1)
    flags = Path("/proc/cpuinfo").read_text()
    units = [unit for unit in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if unit in flags]
    return f"{name}, {units[0] if units else 'no AVX2'}"


@maker(repeatable=False)
def demo():
    text = run("scripts/demo.sh")
    text = re.sub(r"\x1b\[[0-9;]*[mK]|\r", "", text)
    text = re.sub(r"runs/demo-\d+", "runs/demo", text).replace(f"{ROOT}/", "…/")
    text = text[text.index("2/7 "):]  # the build says what the compiler says
    lines = thin_out(text.split("\n"), lambda line: line.startswith("step "), 6)
    lines = thin_out(lines, lambda line: re.match(r"I \S+ (saved|step \d+: validation)", line), 3)
    begin = next(i for i, line in enumerate(lines) if line.startswith("  total "))
    end = next(i for i, line in enumerate(lines) if line.startswith("5/7 "))
    lines[begin + 1:end] = ["", "…", ""]
    lines = [line for i, line in enumerate(lines) if line != "…" or lines[i - 1] != "…"]
    return (f"\n`scripts/demo.sh` on two cores ({cpu()}), the program built already, shortened where "
            "it says `…`:\n" + fenced("\n".join(line.rstrip() for line in lines)))


# The run of README.md: 1 M parameters, the pages of docs/ as text. reduction_width = 2 gives one worker the
# bits of two.
KILLED_RUN = """run.steps = 120
model = {hidden_size = 128, intermediate_size = 352, num_hidden_layers = 4, num_attention_heads = 4}
data = {train = "corpus.arrow", tokenizer = "tokenizer", sequence_length = 512}
batch = {global_sequences = 8, micro_sequences = 4}
optimizer.learning_rate = 2e-3
parallel.reduction_width = 2
checkpoint.every_steps = 60
log.every_steps = 30
"""
KILLED_AFTER = 75


@maker(repeatable=False)
def killed_run():
    folder = Path(tempfile.mkdtemp(prefix="skein-transcripts-"))
    try:
        shutil.copytree(ROOT / "docs", folder / "text")
        (folder / "run.toml").write_text(KILLED_RUN)
        run(SKEIN, "data", "ingest", "--out", "corpus.arrow", "text", cwd=folder)
        run(SKEIN, "data", "tokenizer", "--vocab-size", "1024", "--out", "tokenizer", "corpus.arrow", cwd=folder)
        run(SKEIN, "train", "run.toml", "--set", "run.dir=undisturbed", cwd=folder)
        train, metrics = (SKEIN, "train", "run.toml", "--set", "run.dir=run"), folder / "run/metrics.jsonl"
        with open(folder / "killed.log", "wb") as log:
            training = subprocess.Popen((*train, "--set", "launch.workers=2"), cwd=folder, stdout=log, stderr=log)
            while not metrics.exists() or f'"step": {KILLED_AFTER},' not in metrics.read_text():
                if training.poll() is not None:
                    sys.exit(f"transcripts: it ended by itself:\n{(folder / 'killed.log').read_text()}")
                time.sleep(0.01)
            training.kill()
            training.wait()
        time.sleep(2)  # its workers die with it
        parts = [(folder / "killed.log").read_text(), run(*train, cwd=folder)]
        last = [re.search(r'^{"step": 120, "loss": [^,]+', (folder / name / "metrics.jsonl").read_text(), re.M)[0]
                for name in ("undisturbed", "run")]
    finally:
        shutil.rmtree(folder)
    if last[0] != last[1]:
        sys.exit(f"transcripts: the losses differ: {last}")
    step = r"step +(?:1|\d*0)/.*"
    killed = "\n".join(re.findall(rf"^(?:I \S+ [\d.]+ M parameters.*|{step})$", parts[0], re.M))
    resumed = "\n".join(re.findall(rf"^(?:I \S+ (?:resuming|changed).*|{step})$", parts[1], re.M))
    return fenced(f"$ skein train run.toml --set launch.workers=2\n{killed}\nKilled\n"
                  f"$ skein train run.toml\n{resumed}\n"
                  "$ grep -ho '^{\"step\": 120, \"loss\": [^,]*' undisturbed/metrics.jsonl run/metrics.jsonl\n"
                  + "\n".join(last))


def count(value):
    """Three digits, as the program prints counts."""
    for factor, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"


@maker(repeatable=True)
def published_runs():
    runs = {"llama2-7b-trn1-4096": (4096, ": tensor 8, data 512"),
            "llama2-13b-trn1": (1024, ": tensor 8, pipeline 4"),
            "llama2-70b-trn1-tp32-pp4": (1024, ": KV × 4"),
            "llama2-70b-trn1-tp8-pp8": (1024, "")}
    text = ("| configuration | ranks | largest rank | fits | a step | tokens/s | MFU |\n"
            "|---|---|---|---|---|---|---|\n")
    for name, (ranks, note) in runs.items():
        plan = json.loads(run(SKEIN, "plan", f"configs/{name}.toml", "--ranks", str(ranks), "--json",
                              "--hardware", "configs/hardware/trn1-32xlarge.toml"))
        text += (f"| `{name}.toml`{note} | {ranks:,} | {plan['per_rank']['total_bytes'] / 1e9:.1f} GB | "
                 f"{'yes' if plan['fits'] else 'no'} | {plan['step_seconds']:.3g} s | "
                 f"{count(plan['tokens_per_second'])} | {plan['peak_utilization']:.0%} |\n")
    return "\n" + text + "\n"


LLAMA3_8B = "configs/llama3-8b-h100.toml"


@maker(repeatable=True)
def llama3_8b_plan():
    """Whether it fits, how long it takes, and its disk."""
    shown = re.compile(r"  on device|  (device|host) memory:|Predicted|The run|  (peaks|time|disk|param_norm) ")
    lines = run(SKEIN, "plan", LLAMA3_8B).splitlines()
    lines = [line for line in lines if shown.match(line)]
    text = "\n".join(lines).replace("\nPredicted", "\n\nPredicted").replace("\nThe run", "\n\nThe run")
    return f"\n```\n{text}\n```\n\n"


@maker(repeatable=True)
def llama3_8b_layouts():
    layouts = {"8 data ranks": ("parallel.tensor=1", "parallel.pairs=false"),
               "8 data ranks, `memory.recompute=full`":
                   ("parallel.tensor=1", "parallel.pairs=false", "memory.recompute=full"),
               "4 data × 2 tensor ranks, micro-batches in pairs": (),
               "the same in fp8, without pairs": ("parallel.pairs=false", "precision.mode=fp8")}
    text = "| layout | on a GPU of 80 GB | predicted |\n|---|---|---|\n"
    for name, settings in layouts.items():
        sets = [word for setting in settings for word in ("--set", setting)]
        text_of_plan = run(SKEIN, "plan", LLAMA3_8B, "--json", *sets)
        plan, _ = json.JSONDecoder().raw_decode(text_of_plan[text_of_plan.index("{"):])  # beside notes
        held = f"{plan['per_rank']['device_bytes'] / 1e9:.1f} GB{'' if plan['fits'] else ': does not fit'}"
        text += f"| {name} | {held} | {count(plan['tokens_per_second'])} tokens/s |\n"
    return "\n" + text + "\n"


@maker(repeatable=True)
def memory_advice():
    text = run(SKEIN, "plan", "configs/llama2-7b-h200.toml", "--hardware", "configs/hardware/h100-8x.toml",
               "--set", "device.kind=cuda")
    begin = text.index("  device memory: ")
    fits = text[begin:text.index("\n", begin) + 1]
    return fenced(fits + text[text.index("Changes that make it fit"):].split("\n\n")[0])


@maker(repeatable=True)
def passes():
    listed = run(SKEIN, "plan", "configs/llama2-7b-trn1-4096.toml", "--ranks", "4096", "--passes")
    return fenced(textwrap.fill(" → ".join(line.split()[0] for line in listed.splitlines()), 100))


TINY_MODEL = {"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": 65536, "rms_norm_eps": 1e-6}


@maker(repeatable=True)
def cleaning_rules():
    """`skein data clean --list-rules` as tables."""
    page = ""
    for line in run(SKEIN, "data", "clean", "--list-rules").splitlines():
        if not line.startswith(" "):
            page += f"\n### {line}\n\n| rule | default | a document goes, or a line, where … |\n|---|---|---|\n"
            continue
        name, value, meaning = line.split(maxsplit=2)
        page += f"| `{name}` | {value} | {meaning} |\n"
    return page + "\n"


def plan_of_tiny(*arguments, ranks=1, **settings):
    """`skein plan` of a model of two layers, on the kind of CPU that all hosts have."""
    keys = {"device.cpu": "sse4", "device.threads": 1, "batch.global_sequences": ranks,
            "data.sequence_length": 32, "run.steps": 10, "optimizer.warmup_steps": 1,
            "optimizer.decay_steps": 9,
            **{key.replace("__", "."): value for key, value in settings.items()}}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.json").write_text(json.dumps(TINY_MODEL))
        (Path(folder) / "run.toml").write_text(
            f'model.hf_config = "{folder}/model.json"\n')
        sets = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
        return run(SKEIN, "plan", f"{folder}/run.toml", "--ranks", str(ranks), *sets, *arguments)


def without_middle(listed):
    """A list in a line of a graph; of a long one its beginning."""
    items = re.split(r", (?![^\[{(]*[\]})])", listed)
    return ", ".join(items if len(items) <= 4 else [items[0], "…"])


def shorten(line):
    """A node of a graph as it fits a page."""
    line = re.sub(r"model\.layers\.\d+\.(self_attn\.|mlp\.)?", "…", line)
    line = re.sub(r"\{(?=[^}]*=)[^}]{40,}\}", "{…}", line)
    node = re.fullmatch(r"(\s*(?:\d+ )?)(.*?) = (\w+)\((.*?)\)(.*?)(?: : (.*?))?( @.*)?", line)
    if not node:
        return line
    before, outputs, op, inputs, constants, types, scope = node.groups()
    return (f"{before}{without_middle(outputs)} = {op}({without_middle(inputs)}){constants}"
            f"{' : ' + without_middle(types) if types else ''}{scope or ''}")


# block: the pass, what is set, the beginnings of the lines that are shown
GRAPHS = {
    "graph_built": ("build_decoder", {}, r"skein|mesh|param.*(embed|0.self_attn.q)|input (tok|loss)|"
                    r"forward|  x |  l0|  head.(logits.0|0)|  token_loss|  loss_sum|output"),
    "graph_sharded": ("shard", {"ranks": 4, "parallel__tensor": 2},
                      r"param.*0.mlp|  l0.(mlp_norm.tp|gate|swiglu|down|x)"),
    "graph_differentiated": ("differentiate", {},
                             r"backward|.*_d[wx]\(.*1\.mlp|.*swiglu_back.*l1|.*norm_back.*l1.mlp"),
    "graph_hoisted": ("hoist_transient", {"data__sequence_length": 16384},
                      r"  (head.logits.0|head.0|d.head.x.0|grad.lm_head.*logits.0)|backward"),
    "graph_recomputed": ("recompute", {}, r"  again.l1.swiglu|.*dw\(.*again.l1.swiglu"),
    "graph_of_a_stage": ("take_stage", {"ranks": 2, "parallel__pipeline": 2},
                         r".*= (send|receive)|backward|.*received,.*down"),
    "graph_updated": ("append_update", {"ranks": 2}, r"update|  (loss_sum'2.dp|global_label|grad_|"
                      r"grad.model.embed.*(fill|dp.F,.*F\",|dp.F, .*redis)|model.embed)"),
    "graph_offloaded": ("offload", {"data__sequence_length": 16384,
                                    "memory__offload_activations": "true"},
                        r"  (begin_)?(stash|fetch).l0.gate|  again.l0.swiglu"),
    "program": ("plan_memory", {}, r"program forward|    [0-3] .*layers.0|    0 .*embed"),
}


def graph(after, settings, shown):
    lines, result = plan_of_tiny("--print-after", after, **settings).splitlines(), []
    for line in lines:
        if re.match(shown, line):
            result.append(shorten(line))
        elif result and result[-1] != "…":
            result.append("…")
        if line.startswith("program backward"):
            break
    while result[-1] == "…":
        result.pop()
    return "\n```\n" + "\n".join(result) + "\n```\n\n"


for name, (after, settings, shown) in GRAPHS.items():
    MAKERS[name] = lambda made=(after, settings, shown): graph(*made)
    REPEATABLE.add(name)


@maker(repeatable=True)
def arenas():
    orders = {
        "weights, gradients, optimizer, inputs, rounded": "one after another, as in the graph",
        "activations: what backward reads of forward, for each micro-batch in flight":
            "one after another",
        "host activations: the same, of what `stash` gives; in host memory": "one after another",
        "workspace: all else, and kernels' scratch":
            "lifetimes that do not overlap share memory"}
    modes = ("none", "selective", "full")
    plans = [json.loads(plan_of_tiny("--json", memory__recompute=mode))["per_rank"] for mode in modes]
    text = "| arena | order | bytes here: none | selective | full |\n|---|---|---|---|---|\n"
    for arena, order in orders.items():
        names = arena.split(":")[0].replace("host activations", "host_activations").split(", ")
        sums = [sum(plan[f"{name}_bytes"] for name in names) for plan in plans]
        text += f"| {arena} | {order} | {' | '.join(f'{total:,}' for total in sums)} |\n"
    return "\n" + text + "\n"


def main():
    check = sys.argv[1:] == ["--check"]
    wanted = [] if check else sys.argv[1:]
    for name in wanted:
        if name not in MAKERS:
            sys.exit(f"transcripts: there is no block {name}: expected {', '.join(MAKERS)}")
    made, stale = {}, []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        old = page.read_text()
        if old.count("<!-- transcript: begin") != len(BLOCK.findall(old)):
            sys.exit(f"transcripts: {page.relative_to(ROOT)}: a block has no name or no end")

        def replace(match):
            name = match.group(2)
            if name not in MAKERS:
                sys.exit(f"transcripts: {page.relative_to(ROOT)}: nothing makes the block {name}")
            if (check and name not in REPEATABLE) or (wanted and name not in wanted):
                made.setdefault(name, None)
                return match.group(0)
            made[name] = MAKERS[name]()
            return match.group(1) + made[name] + match.group(4)

        new = BLOCK.sub(replace, old)
        if new != old and check:
            stale.append(str(page.relative_to(ROOT)))
        elif new != old:
            page.write_text(new)
    if missing := MAKERS.keys() - made.keys():
        sys.exit(f"transcripts: no page has the block {', '.join(sorted(missing))}")
    if stale:
        sys.exit(f"transcripts: {', '.join(stale)} are out of date: run scripts/transcripts.py "
                 f"{' '.join(sorted(REPEATABLE))}")


main()
