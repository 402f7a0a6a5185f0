#!/usr/bin/env python3
"""The certificates of docs/certificates.md: what vendors' compilers say of a step's programs.

  scripts/certificates.py                   writes the table from bench/results/certificates/*.json
  scripts/certificates.py --check           fails where the page says something else; writes nothing
  scripts/certificates.py --list            names the cases
  scripts/certificates.py --compile [NAME…] makes the files: of the cases named, else of all that have none.
                                            scripts/certificates.sh has fetched the compilers
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/certificates"
PAGE = ROOT / "docs/certificates.md"
BLOCK = re.compile(r"(<!-- certificates: begin -->\n)(.*?)(<!-- certificates: end -->)", re.S)
GPU = ".deps/jax-cuda13-pjrt-plugin-0.12.0.1/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
TPU = ".deps/libtpu-plugin-0.0.52/libtpu/libtpu.so"
CPU = ".deps/lammps-jax-pjrt-cpu-plugin-0.11.2/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"

SEVEN = ["configs/llama2-7b-trn1-4096.toml", "--ranks", "8"]
FOUR = ["--ranks", "4", "--set", "parallel.data=2", "--set", "parallel.tensor=2"]


def cases():
    """By name: what is compiled, the target, and the arguments of `skein plan`."""
    rows = {}

    def add(name, what, target, arguments, stages=1, ranks_of_stage=1):
        for stage in range(stages):
            suffix = f"-stage{stage}" if stages > 1 else ""
            more = ["--rank", str(stage * ranks_of_stage)] if stages > 1 else []
            rows[f"{name}-{target.replace(':', '-')}{suffix}"] = (
                what + (f", stage {stage}" if stages > 1 else ""), target, arguments + more)

    for target in "cpu", "h200x8", "v5p:2x2x1":
        add("demo", "demo, dp 2 × tp 2", target, ["configs/demo.toml", *FOUR])
    add("7b-one", "7B, one GPU, two sequences", "h200x1", ["configs/llama2-7b-h200.toml"])
    for target in "h200x8", "v5p:2x2x2":
        add("7b", "7B, tp 8", target, SEVEN)
    for target in "h200x8", "v5p:2x2x2":
        add("13b", "13B, tp 8 × pp 4", target, ["configs/llama2-13b-trn1.toml", "--ranks", "32"], 4, 8)
    for target in "h200x32", "v5p:4x4x2":
        add("70b", "70B, tp 32 × pp 4", target,
            ["configs/llama2-70b-trn1-tp32-pp4.toml", "--ranks", "128"], 4, 32)
    return rows


def compile_case(name, target, arguments):
    plugin = CPU if target == "cpu" else GPU if "x" in target and ":" not in target else TPU
    done = subprocess.run([ROOT / "build/skein", "plan", *arguments, "--compile", target, "--plugin", plugin,
                           "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"certificates: {name}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(json.loads(done.stdout), indent=1) + "\n")


def compile_cases(names):
    rows = cases()
    for name in names:
        if name not in rows:
            sys.exit(f"certificates: there is no case {name}: expected one of {', '.join(rows)}")
    for name, (_, target, arguments) in rows.items():
        if name in names or (not names and not (RESULTS / f"{name}.json").exists()):
            print(f"certificates: {name}", file=sys.stderr, flush=True)
            compile_case(name, target, arguments)


def gigabytes(count):
    return f"{count / 1e9:.2f}" if count >= 1e7 else f"{count / 1e9:.4f}"


def percent(compiled, planned):
    return f"{100 * (compiled - planned) / planned:+.1f}" if planned else "0"


def exchanges(part):
    if part["exchanges"] is None:
        return None
    return sum(one["count"] for one in part["exchanges"]), sum(one["sent_bytes"] for one in part["exchanges"])


def worst_difference(stage):
    """Of arguments or results of any program, in percent. Below a megabyte the addresses of results show."""
    return max((100 * abs(one["compiler"][key] - one["plan"][key]) / one["plan"][key]
                for one in stage["programs"] for key in ("argument_bytes", "result_bytes")
                if one["plan"][key] >= 1e6), default=0)


def step_row(what, target, stage):
    """Of the programs of a step, one of each kind: those for the first micro-batch are like the others."""
    programs = [one for one in stage["programs"]
                if not re.search(r"evaluate|\.first|\.last|\.only", one["name"])]

    def total(side, key):
        return sum(one[side][key] for one in programs)

    pairs = [(exchanges(one["plan"]), exchanges(one["compiler"])) for one in programs]
    told = all(compiled is not None for _, compiled in pairs)
    count = f"{sum(p[0] for p, _ in pairs)} / {sum(c[0] for _, c in pairs) if told else '?'}"
    planned_bytes = sum(p[1] for p, _ in pairs)
    sent = percent(sum(c[1] for _, c in pairs), planned_bytes) if told and planned_bytes else "0"
    flops = [one["compiler"]["flops"] for one in programs]
    optimal = [one["compiler"]["optimal_seconds"] for one in programs]
    cells = [
        what, f"`{target}`", gigabytes(stage["kept_bytes"]),
        percent(total("compiler", "argument_bytes"), total("plan", "argument_bytes")),
        percent(total("compiler", "result_bytes"), total("plan", "result_bytes")),
        f"{worst_difference(stage):.1f}",
        percent(total("compiler", "donated_bytes"), total("plan", "donated_bytes")),
        f"{gigabytes(stage['workspace_bytes'])} / {gigabytes(stage['most_temporary_bytes'])}",
        f"{total('plan', 'flops') / 1e12:.2f} / {sum(flops) / 1e12:.2f}" if None not in flops
        else f"{total('plan', 'flops') / 1e12:.2f} / ?",
        f"{sum(optimal):.2f}" if None not in optimal else "?",
        count, sent, f"{sum(one['compile_seconds'] for one in programs):.0f}",
    ]
    return "| " + " | ".join(cells) + " |\n"


def table():
    text = ("| model, layout | target | kept GB | arguments % | results % | worst % | donated % "
            "| workspace / temporaries GB | TFLOP | best s | exchanges | sent % | compiled in s |\n"
            "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
    for name, (what, target, _) in cases().items():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            continue
        for stage in json.loads(path.read_text())["stages"]:
            text += step_row(what, target, stage)
    return text


def main(arguments):
    if arguments[:1] == ["--list"]:
        return print("\n".join(cases()))
    if arguments[:1] == ["--compile"]:
        return compile_cases(arguments[1:])
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    page = PAGE.read_text()
    new, found = BLOCK.subn(lambda block: block[1] + "\n" + table() + "\n" + block[3], page)
    if found != 1:
        sys.exit(f"certificates: {PAGE.relative_to(ROOT)} has no block <!-- certificates: begin -->")
    if arguments and new != page:
        sys.exit("certificates: docs/certificates.md says something else than bench/results/certificates/: "
                 "run scripts/certificates.py")
    if not arguments:
        PAGE.write_text(new)


if __name__ == "__main__":
    main(sys.argv[1:])
