#!/usr/bin/env python3
"""A training step of the demo model on XLA's CPU: Skein through PJRT beside JAX, in alternating rounds.

  bench/pjrt_jax.py [--skein build/skein] [--plugin PATH] [--sides SIDE ...] [--precisions fp32 bf16] [--steps 12]
                    [--rounds 5] [--threads N] [--form FORM] [--set KEY=VALUE ...] [--no-check] [--folder DIR]
  bench/pjrt_jax.py --forms [FORM ...]     times JAX's forms in place of the sides

The demo model (configs/demo.toml: a Llama of 10 M parameters, 8 rows of 512 tokens a step) on the headers of this
machine. JAX is installed into build/judges/jax if it is not there, in the version of JAX below.

Sides       skein-pjrt  `skein train` with device.kind=pjrt and the plugin (scripts/test_tools.sh unpacks it)
            jax-cpu     bench/pjrt_jax_model.py, a training step in pure jax.numpy, on JAX's own CPU client
            jax-plugin  the same program on the same plugin as skein-pjrt
            skein-cpu   `skein train` with device.kind=cpu: Skein's own kernels
Precisions  fp32 on all sides. bf16: weights and activations in bf16, moments and sums of gradients in fp32; Skein
            rounds updated weights stochastically (precision.mode bf16-sr), JAX to nearest
Same work   All sides begin with the weights of one Hugging Face folder (`skein checkpoint export`) and train on the
            rows that `skein data sample` prints, which are those of `skein train`. In fp32 the losses of step 1 must
            agree within 1e-4, or the script fails; --no-check leaves that out
Times       of the steps after the third: a run's median, and of the rounds their median, least and most. Each run is
            a process of its own, which compiles its programs without a cache. Every process may use --threads
            cores, the first ones (all, if it is left out)
Forms       JAX's step can be written in several ways that compute the same: Form in bench/pjrt_jax_model.py. FORMS has
            the fastest ones that were found, TRIED those that --forms times

Prints a line for each run, then a table.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.path.join(ROOT, "build", "judges", "jax")
JAX = "0.10.2"
PLUGIN = os.path.join(ROOT, ".deps", "lammps-jax-pjrt-cpu-plugin-0.11.2", "lammps_jax_pjrt_cpu",
                      "pjrt_c_api_cpu_plugin.so")
SIDES = ["skein-pjrt", "jax-cpu", "jax-plugin", "skein-cpu"]
MODES = {"fp32": "fp32", "bf16": "bf16-sr"}  # precision.mode of Skein
FORMS = {"fp32": "", "bf16": ""}
TRIED = ["", "attention=blocks:256", "attention=blocks:64", "attention=whole", "micro=8", "loop=scan",
         "layers=scan,loop=scan", "projections=separate", "loss=written", "head=copied", "embedding=product",
         "compute=fp32"]
WARM_UP = 3  # steps that are not counted
TOLERANCE = 1e-4
COMPILED = re.compile(r"compiled \d+ programs? for .* in ([\d.]+) s\b")


class Refused(Exception):
    """Why a side cannot be measured, in one line."""


def install_jax():
    """The Python of an environment that has JAX."""
    python = os.path.join(ENVIRONMENT, "bin", "python")
    done = os.path.join(ENVIRONMENT, f".jax-{JAX}")
    if not os.path.exists(done):
        print(f"installing jax {JAX} into build/judges/jax", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"jax=={JAX}"], check=True)
        open(done, "w").close()
    return python


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        found = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if ":" in line}
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def run_command(args, command):
    """What it printed on both streams; it uses the first --threads cores."""
    cores = sorted(os.sched_getaffinity(0))[:args.threads]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no output"]
        raise Refused(f"ended with {done.returncode}: {lines[-1][:300]}")
    return done.stdout, done.stderr


def settings_of(args):
    """What all runs of Skein share."""
    settings = {"data.train": f"{args.folder}/corpus.arrow", "data.validation": "",
                "data.tokenizer": f"{args.folder}/tokenizer", "checkpoint.every_steps": 0, "validate.every_steps": 0,
                "log.tensorboard": "false", "device.threads": args.threads}
    return settings | dict(setting.split("=", 1) for setting in args.set)


def with_settings(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def prepare(args):
    """Makes in the folder what all sides read: a corpus, weights in fp32, and the rows of the steps."""
    if not os.path.exists(f"{args.folder}/tokenizer"):
        subprocess.run([os.path.join(ROOT, "bench", "demo_corpus.sh"), args.skein, args.folder], check=True)
    config = os.path.join(ROOT, "configs", "demo.toml")
    if not os.path.exists(f"{args.folder}/weights/config.json"):
        run = os.path.join(args.folder, "first")
        shutil.rmtree(run, ignore_errors=True)
        settings = settings_of(args) | {"run.dir": run, "run.steps": 1, "precision.mode": "fp32", "device.kind": "cpu"}
        run_command(args, [args.skein, "train", config] + with_settings(settings))
        run_command(args, [args.skein, "checkpoint", "export", run, "--out", f"{args.folder}/weights"])
    settings = settings_of(args) | {"run.dir": f"{args.folder}/no_run"}
    rows, _ = run_command(args, [args.skein, "data", "sample", config, "--step", "1", "--count", str(args.steps),
                                 "--json"] + with_settings(settings))
    with open(f"{args.folder}/rows.jsonl", "w", encoding="utf-8") as file:
        file.write(rows)
    with open(f"{args.folder}/first/config.toml", "rb") as file:
        args.optimizer = tomllib.load(file)["optimizer"]


def run_skein(args, kind, precision):
    run = os.path.join(args.folder, "run")
    shutil.rmtree(run, ignore_errors=True)
    settings = settings_of(args) | {
        "run.dir": run, "run.steps": args.steps, "model.init_from": f"{args.folder}/weights",
        "precision.mode": MODES[precision], "device.kind": kind}
    if kind == "pjrt":
        settings |= {"device.pjrt_plugin": args.plugin, "device.compile_cache": "off"}
    command = [args.skein, "train", os.path.join(ROOT, "configs", "demo.toml")]
    _, log = run_command(args, command + with_settings(settings))
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as lines:
        steps = [json.loads(line) for line in lines]
    compiled = COMPILED.search(log)
    return {"compile_s": float(compiled[1]) if compiled else None, "losses": [step["loss"] for step in steps],
            "step_ms": [step["step_ms"] for step in steps]}


def run_jax(args, plugin, precision, form):
    job = {"weights": f"{args.folder}/weights/model.safetensors", "config": f"{args.folder}/weights/config.json",
           "rows": f"{args.folder}/rows.jsonl", "precision": precision, "optimizer": args.optimizer,
           "steps": args.steps, "plugin": plugin, "form": form}
    path = os.path.join(args.folder, "job.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(job, file)
    model = os.path.join(ROOT, "bench", "pjrt_jax_model.py")
    return json.loads(run_command(args, [args.python, model, path])[0].splitlines()[-1])


def run_side(args, side, precision):
    if side.startswith("skein"):
        return run_skein(args, side.partition("-")[2], precision)
    form = args.form if args.form is not None else FORMS[precision]
    return run_jax(args, args.plugin if side == "jax-plugin" else "", precision, form)


def print_run(name, result):
    times = result["step_ms"][WARM_UP:]
    compiled = "" if result["compile_s"] is None else f"compiled in {result['compile_s']:.1f} s, "
    print(f"{name}: {compiled}{statistics.median(times):.0f} ms a step ({min(times):.0f} to {max(times):.0f}), loss "
          f"{result['losses'][0]:.6f} to {result['losses'][-1]:.6f}", flush=True)


def check_losses(results):
    """Of fp32: all sides compute the loss of the same weights and rows."""
    firsts = {side: runs[0]["losses"] for (side, precision), runs in results.items() if precision == "fp32"}
    reference = firsts.get("skein-pjrt") or firsts.get("skein-cpu")
    if reference is None:
        return
    for side, losses in firsts.items():
        first = abs(losses[0] - reference[0])
        most = max(abs(loss - other) for loss, other in zip(losses, reference))
        print(f"{side}: the loss of step 1 differs by {first:.1e} in fp32, those of {len(losses)} steps by {most:.1e} "
              "at most")
        if first > TOLERANCE:
            sys.exit(f"{side} gives {losses[0]:.6f} at step 1: expected {reference[0]:.6f}, within {TOLERANCE}")


def spread(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f})"


def print_table(args, results):
    print(f"\n{cpu_name()}, {args.threads} threads; medians of {args.rounds} rounds of {args.steps - WARM_UP} steps; "
          f"jax {JAX}\n")
    print("| side | precision | ms a step | tokens/s | time / skein-pjrt | compile |")
    print("|---|---|---|---|---|---|")
    for (side, precision), runs in results.items():
        times = [statistics.median(run["step_ms"][WARM_UP:]) for run in runs]
        reference = results.get(("skein-pjrt", precision))
        ratio = "–"
        if reference:
            ratio = statistics.median(times) / statistics.median(
                statistics.median(run["step_ms"][WARM_UP:]) for run in reference)
            ratio = f"{ratio:.2f}"
        seconds = [run["compile_s"] for run in runs if run["compile_s"] is not None]
        compiled = f"{statistics.median(seconds):.1f} s" if seconds else "–"
        mode = MODES[precision] if side.startswith("skein") else precision
        print(f"| {side} | {mode} | {spread(times)} | {args.tokens / statistics.median(times) * 1e3:.0f} | {ratio} "
              f"| {compiled} |")


def measure(args):
    results = {(side, precision): [] for precision in args.precisions for side in args.sides}
    for number in range(args.rounds):
        for key in list(results):
            side, precision = key
            try:
                results[key].append(run_side(args, side, precision))
            except Refused as refused:
                print(f"{side} {precision}: not measured: {refused}", flush=True)
                if side.startswith("skein"):
                    sys.exit(1)
                del results[key]
                continue
            print_run(f"round {number + 1}, {side} {precision}", results[key][-1])
        if number == 0 and args.check:
            check_losses(results)
    print_table(args, results)


def measure_forms(args):
    for precision in args.precisions:
        for form in args.forms or TRIED:
            try:
                print_run(f"jax-cpu {precision} {form or 'as Form has it'}", run_jax(args, "", precision, form))
            except Refused as refused:
                print(f"{form} {precision}: not measured: {refused}", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skein", default=os.path.join(ROOT, "build", "skein"))
    parser.add_argument("--plugin", default=PLUGIN)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--precisions", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--form", help="of JAX, such as micro=8,attention=whole")
    parser.add_argument("--forms", nargs="*", help="times these forms")
    parser.add_argument("--set", action="append", default=[], help="a setting of all runs of Skein")
    parser.add_argument("--no-check", dest="check", action="store_false")
    parser.add_argument("--folder", help="keeps corpus, weights and rows there, for another call")
    args = parser.parse_args()
    if args.steps <= WARM_UP:
        parser.error(f"--steps is {args.steps}: expected more than {WARM_UP}, whose times are not counted")
    if any(side in ("skein-pjrt", "jax-plugin") for side in args.sides) and not os.path.exists(args.plugin):
        parser.error("there is no plugin: scripts/test_tools.sh unpacks it, or name one with --plugin")
    return args


def main():
    args = parse_arguments()
    args.python = install_jax()
    with open(os.path.join(ROOT, "configs", "demo.toml"), "rb") as file:
        config = tomllib.load(file)
    args.tokens = config["batch"]["global_sequences"] * config["data"]["sequence_length"]
    with tempfile.TemporaryDirectory() as temporary:
        args.folder = os.path.abspath(args.folder or temporary)
        os.makedirs(args.folder, exist_ok=True)
        try:
            prepare(args)
        except Refused as refused:
            sys.exit(f"{args.skein} {refused}")
        if args.forms is not None:
            measure_forms(args)
        else:
            measure(args)


if __name__ == "__main__":
    main()
