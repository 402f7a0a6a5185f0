#!/usr/bin/env python3
"""Compares greedy texts of `skein serve` with those of transformers: 200 prompts of each of eight small models.

    scripts/judge/greedy.py FOLDER [--skein build/skein] [--prompts 200] [--tokens 64] [--models llama,qwen3]
    scripts/judge.sh greedy                               fetches torch and transformers first

FOLDER gets the models: five that are trained here on the pages of this checkout (a Llama, one with a tied embedding, a
Mistral, a Qwen 2 and a Qwen 3), and three with random weights. Prompts are token ids of these pages, 1 to 200 of them.
All prompts of a model are asked at once, of transformers one at a time, in fp32, with its cache.

Texts are compared up to the first token at which transformers' two likeliest lie within 2e-3 nats: there either may
come. Up to it tokens must be equal, and their log-probabilities within 1e-4. Exit code 1: they are not, or there are
such places at more than 1 % of the tokens of trained models.
"""

import argparse
import concurrent.futures
import json
import random
import subprocess
import sys
import urllib.request
from pathlib import Path

import torch
import transformers

ROOT = Path(__file__).resolve().parents[2]
VOCABULARY = 1000
NEAR, WORST = 2e-3, 1e-4
SIZES = {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
         "bos_token_id": 1, "eos_token_id": 2}
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 128}

# name: model_type, its own values, steps of training (0: random weights)
MODELS = {
    "llama": ("llama", {"tie_word_embeddings": False}, 250),
    "llama-tied": ("llama", {"tie_word_embeddings": True, "attention_bias": True}, 250),
    "mistral": ("mistral", {"tie_word_embeddings": False, "sliding_window": None, "head_dim": 40,
                            "num_key_value_heads": 4}, 250),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}, 250),
    "qwen3": ("qwen3", {"tie_word_embeddings": True, "head_dim": 48}, 250),
    "random-llama3": ("llama", {"rope_parameters": {**LLAMA3_ROPE, "rope_theta": 5e5}, "head_dim": 64}, 0),
    "random-qwen2": ("qwen2", {"num_attention_heads": 8, "num_key_value_heads": 1}, 0),
    "random-qwen3": ("qwen3", {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 80}, 0),
}


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def make_text(skein, folder):
    if not (folder / "tokenizer").exists():
        run(skein, "data", "ingest", "--out", folder / "corpus.arrow", ROOT / "docs", ROOT / "CHANGELOG.md")
        run(skein, "data", "tokenizer", "--vocab-size", VOCABULARY, "--out", folder / "tokenizer",
            folder / "corpus.arrow")


def make_model(skein, folder, name):
    model_type, own, steps = MODELS[name]
    out = folder / name
    if (out / "hf" / "config.json").exists():
        return out / "hf"
    config = transformers.AutoConfig.for_model(model_type, **{**SIZES, **own})
    if steps == 0:
        torch.manual_seed(len(name))
        # Wide weights, so that the likeliest token stands out.
        config.initializer_range = 0.15
        transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(out / "hf")
        for file in (folder / "tokenizer").iterdir():
            (out / "hf" / file.name).write_bytes(file.read_bytes())
        return out / "hf"
    config.architectures = [transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
    config.save_pretrained(out)
    run(skein, "train", ROOT / "configs/demo.toml", "--set", f'run.dir="{out}/run"', "--set", f"run.steps={steps}",
        "--set", f'model.hf_config="{out}/config.json"', "--set", f'data.train="{folder}/corpus.arrow"',
        "--set", f'data.tokenizer="{folder}/tokenizer"', "--set", 'data.validation=""',
        "--set", "data.sequence_length=256", "--set", "batch.global_sequences=8", "--set", "batch.micro_sequences=8",
        "--set", "optimizer.learning_rate=4e-3", "--set", "optimizer.warmup_steps=20",
        "--set", "validate.every_steps=0")
    run(skein, "checkpoint", "export", out / "run", "--out", out / "hf")
    return out / "hf"


def prompts_of(folder, count, longest):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
    ids = tokenizer("\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))),
                    add_special_tokens=False)["input_ids"]
    draw = random.Random(48)
    prompts = []
    for _ in range(count):
        length, begin = draw.randint(1, longest), draw.randrange(len(ids) - longest)
        prompts.append(ids[begin:begin + length])
    return prompts


def ask(url, prompt, tokens):
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "logprobs": 1, "ignore_eos": True,
            "return_tokens_as_token_ids": True}
    request = urllib.request.Request(url + "/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        logprobs = json.load(answer)["choices"][0]["logprobs"]
    return [int(token.removeprefix("token_id:")) for token in logprobs["tokens"]], logprobs["token_logprobs"]


def served(skein, model, prompts, tokens):
    server = subprocess.Popen([skein, "serve", str(model), "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    try:
        url = next(line for line in server.stderr if line.startswith("serving on ")).split()[-1]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            return list(pool.map(lambda prompt: ask(url, prompt, tokens), prompts))
    finally:
        server.terminate()
        server.wait(60)


def compare(model, prompts, answers, tokens):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    theirs.generation_config.eos_token_id = None  # no token ends a text; min_new_tokens would forbid that one
    compared = near = 0
    worst = 0.0
    problems = []
    for number, (prompt, (ids, logprobs)) in enumerate(zip(prompts, answers, strict=True)):
        with torch.inference_mode():
            made = theirs.generate(input_ids=torch.tensor([prompt]), max_new_tokens=tokens, do_sample=False,
                                   use_cache=True, output_logits=True, return_dict_in_generate=True)
        for place, logits in enumerate(made.logits):
            scores = torch.log_softmax(logits[0].double(), -1)
            best = torch.topk(scores, 2)
            if best.values[0] - best.values[1] < NEAR:
                near += 1
                break
            compared += 1
            worst = max(worst, abs(scores[ids[place]].item() - logprobs[place]))
            if ids[place] != best.indices[0].item():
                problems.append(f"prompt {number}, token {place}: {ids[place]}, and transformers has {best.indices[0]}")
                break
    return compared, near, worst, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--skein", default=str(ROOT / "build/skein"))
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    make_text(options.skein, folder)
    prompts = prompts_of(folder, options.prompts, 200)
    failed = False
    trained_compared = trained_near = 0
    for name in options.models.split(","):
        steps = MODELS[name][2]
        model = make_model(options.skein, folder, name)
        answers = served(options.skein, model, prompts, options.tokens)
        compared, near, worst, problems = compare(model, prompts, answers, options.tokens)
        if steps:
            trained_compared, trained_near = trained_compared + compared, trained_near + near
        print(f"{name:>14}: {compared} tokens of {len(prompts)} prompts compared, {len(problems)} differ, "
              f"{near} near ties, log-probabilities within {worst:.1e}", flush=True)
        for problem in problems[:5]:
            print(f"    {problem}")
        failed |= bool(problems) or worst > WORST or compared == 0
    share = trained_near / max(trained_compared + trained_near, 1)
    print(f"near ties of trained models: {share:.2%} of their tokens")
    sys.exit(failed or share > 0.01)


if __name__ == "__main__":
    main()
