#!/usr/bin/env python3
"""Plants poison in a corpus of this machine's own text, trains, and asks `skein why` for each: is it named first?

  why.py SKEIN FOLDER [--documents 100] [--after 600] [--seed 1] [--texts /usr/share/doc] [--kinds bytes,…]
         [--again]

Kinds of poison, in turn: `bytes`, random characters; `repeat`, a word again and again; `shuffle`, the words of
clean prose in random order (a list of files in random order is a list of files). Each has 300 to 2,000 bytes. A small model is trained through the whole
corpus after its first --after steps, with a checkpoint every 50. Then, for each planted document, `skein why`
is asked about the step, after these first ones, that trained on most of it. It counts as named where at most two
clean ones stand before it, which is where a person looks; that it stands first is counted too. Prints a line a document that is not named, then the shares and the median time of a query.
Ends with 1 where the share of those named is below --least.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

CONFIG = """
[run]
dir = "{dir}/run"
steps = {steps}
[model]
hidden_size = 96
intermediate_size = 256
num_hidden_layers = 3
num_attention_heads = 4
num_key_value_heads = 4
max_position_embeddings = 128
[data]
train = "{dir}/corpus.arrow"
tokenizer = "{dir}/tokenizer"
sequence_length = 128
[batch]
global_sequences = 16
micro_sequences = 4
[optimizer]
learning_rate = 3e-3
warmup_steps = 20
schedule = "constant"
[checkpoint]
every_steps = 50
keep = 0
[log]
tensorboard = false
every_steps = 50
"""
TOKENS_A_STEP = 16 * 128


def clean_texts(folder, num_bytes):
    """Documents of 500 to 4,000 characters, of paragraphs that stand in at least four files, in random order:
    text that a small model can know in minutes."""
    files_with = {}
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            try:
                with open(os.path.join(at, name), encoding="utf-8") as file:
                    paragraphs = set(file.read(200_000).split("\n\n"))
            except (OSError, UnicodeDecodeError):
                continue
            for paragraph in paragraphs:
                if 200 <= len(paragraph) <= 2000:
                    files_with[paragraph] = files_with.get(paragraph, 0) + 1
    common = sorted(paragraph for paragraph, files in files_with.items() if files >= 4)
    if len(common) < 50:
        sys.exit(f"{folder} has {len(common)} paragraphs that stand in four files: expected at least 50")
    while num_bytes > 0:
        size, text = random.randint(500, 4000), ""
        while len(text) < size:
            text += random.choice(common) + "\n\n"
        num_bytes -= len(text)
        yield text


def is_prose(text):
    words = text.split()
    return sum(word.strip(".,;:()\"'-").isalpha() for word in words) > 0.9 * len(words)


def poison(kind, clean, prose):
    size = random.randint(300, 2000)
    if kind == "bytes":
        return "".join(chr(random.randint(1, 255)) for _ in range(size))
    words = random.choice(clean if kind == "repeat" else prose).split()
    if kind == "repeat":
        word = random.choice(words)
        return " ".join([word] * (size // (len(word) + 1) + 2))[:size]
    random.shuffle(words)
    return " ".join(words)[:size]


class Job:
    def __init__(self, skein, folder):
        self.skein, self.folder = skein, folder
        self.config = os.path.join(folder, "run.toml")

    def run(self, *arguments):
        done = subprocess.run([self.skein, *arguments], capture_output=True, text=True,
                              env={"OMP_WAIT_POLICY": "passive", **os.environ})
        if done.returncode != 0:
            sys.exit(f"skein {' '.join(arguments)}: ended with {done.returncode}\n{done.stderr}")
        return done.stdout

    def path(self, name):
        return os.path.join(self.folder, name)

    def prepare(self, documents, clean):
        for name, texts in (("documents", documents), ("clean", clean)):
            with open(self.path(name + ".jsonl"), "w", encoding="utf-8") as file:
                for text in texts:
                    file.write(json.dumps({"text": text}) + "\n")
        for name, corpus in (("documents", "corpus"), ("clean", "clean")):
            self.run("data", "ingest", "--out", self.path(corpus + ".arrow"), self.path(name + ".jsonl"))
        self.run("data", "tokenizer", "--vocab-size", "1024", "--out", self.path("tokenizer"),
                 self.path("clean.arrow"))

    def train(self, after, again):
        stats = json.loads(self.run("data", "stats", "--json", "--tokenizer", self.path("tokenizer"),
                                    self.path("corpus.arrow")))
        steps = after + int(1.7 * stats["tokens"] / TOKENS_A_STEP)
        with open(self.config, "w") as file:
            file.write(CONFIG.format(dir=self.folder, steps=steps))
        if not again:
            self.run("train", self.config)
        return steps

    def steps_of(self, numbers, first, last):
        """Of each of these documents the first step that trained on most of it: {document: (tokens, step)}."""
        most = {}
        arguments = ["--step", str(first), "--count", str(last - first + 1), "--json"]
        for line in self.run("data", "sample", self.config, *arguments).splitlines():
            sample, tokens = json.loads(line), {}
            for row in sample["rows"]:
                for part in row["documents"]:
                    if part["document"] in numbers:
                        tokens[part["document"]] = tokens.get(part["document"], 0) + part["end"] - part["begin"]
            for document, count in tokens.items():
                if count > most.get(document, (0, 0))[0]:
                    most[document] = (count, sample["step"])
        return most

    def why(self, step):
        began = time.monotonic()
        answer = json.loads(self.run("why", self.path("run"), "--step", str(step), "--top", "1000", "--json"))
        return answer, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--after", type=int, default=600)
    parser.add_argument("--bytes", type=int, default=1_800_000, help="of clean text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", default="/usr/share/doc")
    parser.add_argument("--kinds", default="bytes,repeat,shuffle")
    parser.add_argument("--again", action="store_true", help="train nothing: ask about the run that FOLDER holds")
    parser.add_argument("--least", type=float, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    os.makedirs(options.folder, exist_ok=True)

    clean = list(clean_texts(options.texts, options.bytes))
    prose = [text for text in clean if is_prose(text)]
    kinds = options.kinds.split(",")
    documents = [(text, None) for text in clean]
    for i in range(options.documents):
        kind = kinds[i % len(kinds)]
        documents.insert(random.randint(0, len(documents)), (poison(kind, clean, prose), kind))
    planted = {number: kind for number, (_, kind) in enumerate(documents) if kind}
    job = Job(os.path.abspath(options.skein), os.path.abspath(options.folder))
    if not options.again:
        job.prepare([text for text, _ in documents], clean)
    steps = job.train(options.after, options.again)
    print(f"{len(clean)} clean documents, {len(planted)} planted, {steps} steps", flush=True)

    best = job.steps_of(planted, options.after + 1, steps)
    first, named, seconds, by_kind = 0, 0, [], {kind: [0, 0, 0] for kind in kinds}
    for number, (tokens, step) in sorted(best.items()):
        answer, took = job.why(step)
        seconds.append(took)
        order = [document["document"] for document in answer["documents"]]
        before = [other for other in order[: order.index(number)] if other not in planted]
        kind = planted[number]
        by_kind[kind][2] += 1
        if not before:
            first += 1
            by_kind[kind][0] += 1
        if len(before) < 3:
            named += 1
            by_kind[kind][1] += 1
            continue
        print(f"step {step}: {kind} document {number}, {tokens} tokens, stands behind {len(before)} clean ones:")
        for document in answer["documents"][: order.index(number) + 1]:
            print("   ", {key: document[key] for key in ("document", "tokens", "loss", "grad_norm", "deviation")},
                  document["text"][:40])
    for kind, (first_of_kind, named_of_kind, all_of_kind) in by_kind.items():
        print(f"{kind}: {named_of_kind} of {all_of_kind} among the first three, {first_of_kind} first")
    print(f"named among the first three: {named} of {len(planted)}, first: {first}; a query takes {statistics.median(seconds):.2f} s (median), "
          f"{max(seconds):.2f} s at most")
    if len(best) < len(planted):
        print(f"{len(planted) - len(best)} planted documents came in none of these steps")
    sys.exit(0 if named >= options.least * len(planted) else 1)


if __name__ == "__main__":
    main()
