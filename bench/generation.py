#!/usr/bin/env python3
"""Greedy generation by skein and by transformers with its cache, side by side, in alternating runs.

    bench/generation.py MODEL_FOLDER [--skein build/skein] [--tokens 256] [--rounds 5] [--threads 2]

MODEL_FOLDER is a Hugging Face folder (`skein checkpoint export`). Needs torch and transformers from
PyPI. Times are those of the new tokens after the first: skein's are the difference of two runs of
the program, with and without them, so that neither start counts. Prints each round and the medians.
"""

import argparse
import statistics
import subprocess
import time

PROMPT = "The file begins with"


def skein_seconds(arguments, tokens):
    command = [arguments.skein, "generate", "--model", arguments.model, "--prompt", PROMPT, "--temperature", "0",
               "--threads", str(arguments.threads), "--max-tokens", str(tokens)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


class Transformers:
    def __init__(self, arguments):
        import torch
        import transformers
        torch.set_num_threads(arguments.threads)
        self.torch = torch
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype="auto").eval()
        self.inputs = self.tokenizer(PROMPT, return_tensors="pt")
        print(f"torch {torch.__version__}, transformers {transformers.__version__}, {self.model.dtype}")

    def seconds(self, tokens):
        begin = time.perf_counter()
        with self.torch.inference_mode():
            self.model.generate(input_ids=self.inputs["input_ids"], min_new_tokens=tokens, max_new_tokens=tokens,
                                do_sample=False, use_cache=True)
        return time.perf_counter() - begin


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        found = {line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if ":" in line}
    return f"{found['model name']} (family {found['cpu family']}, model {found['model']})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--skein", default="build/skein")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    print(cpu_name())
    rival = Transformers(arguments)
    rival.seconds(8)
    rates = {"skein": [], "transformers": []}
    for _ in range(arguments.rounds):
        for name, seconds in (("skein", lambda n: skein_seconds(arguments, n)), ("transformers", rival.seconds)):
            rate = (arguments.tokens - 1) / max(seconds(arguments.tokens) - seconds(1), 1e-9)
            rates[name].append(rate)
            print(f"{name:>12} {rate:9.1f} tokens/s", flush=True)
    ours, theirs = (statistics.median(rates[name]) for name in ("skein", "transformers"))
    print(f"medians: skein {ours:.1f}, transformers {theirs:.1f} tokens/s: {ours / theirs:.2f} times")


if __name__ == "__main__":
    main()
