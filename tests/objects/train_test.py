#!/usr/bin/env python3
"""Trains on corpora and a tokenizer in a store that speaks S3's protocol: moto, behind a proxy that refuses,
resets and cuts. Losses, rows, statistics and origins must be those of the same files on the disk.

  train_test.py SKEIN FOLDER

Ends with 77, skipped, where moto is not installed.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import moto_store
from faulty_proxy import FaultyProxy
from moto_store import expect

SKEIN = str(pathlib.Path(sys.argv[1]).resolve())
STEPS = 12


def run(words, environment=None, expected=0):
    return moto_store.run(SKEIN, [str(word) for word in words], environment, expected)


def json_of(words, environment=None):
    done = subprocess.run([SKEIN, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})}, timeout=1500)
    expect(done.returncode == 0, f"skein {words}: {done.stderr}")
    return json.loads(done.stdout)


def write_documents(path, seed, num_documents, num_words):
    seeded = random.Random(seed)
    words = ("the", "loom", "holds", "threads", "of", "many", "colours", "naïve", "織機", "and")
    with path.open("w") as file:
        for _ in range(num_documents):
            count = seeded.randrange(1, 2 * num_words)
            text = " ".join(f"{seeded.choice(words)}{seeded.randrange(1000)}" for _ in range(count))
            file.write(json.dumps({"text": text}) + "\n")


def make_corpora(data):
    """A corpus of three files, one of a file, one to validate on, a tokenizer."""
    data.mkdir()
    inputs = data.parent / "inputs"
    inputs.mkdir()
    for i in range(3):
        write_documents(inputs / f"web{i}.jsonl", i, 2500, 60)
    write_documents(data.parent / "code.jsonl", 7, 900, 80)
    run(["data", "ingest", "--out", data / "web", "--shards", "3", inputs])
    run(["data", "ingest", "--out", data / "code.arrow", "--validation-out", data / "held.arrow",
         "--validation-fraction", "0.1", data.parent / "code.jsonl"])
    run(["data", "tokenizer", "--vocab-size", "320", "--out", data / "tokenizer", data / "code.arrow"])


def write_config(path, place, run_dir):
    path.write_text(f"""
[run]
dir = "{run_dir}"
steps = {STEPS}
[model]
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 2
[data]
tokenizer = "{place}/tokenizer"
validation = "{place}/held.arrow"
sequence_length = 128
[[data.source]]
path = "{place}/web/"
weight = 0.7
[[data.source]]
path = "{place}/code.arrow"
weight = 0.3
[[data.validation_set]]
path = "{place}/held.arrow"
name = "again"
[batch]
global_sequences = 4
[optimizer]
warmup_steps = 2
decay_steps = {STEPS}
[checkpoint]
every_steps = 4
[validate]
every_steps = 5
batches = 3
""")
    return path


def curve(run_dir):
    """Of each step, and of each validation, the floats as they were printed."""
    steps, validations = {}, {}
    for line in (run_dir / "metrics.jsonl").read_text().splitlines():
        found = json.loads(line, parse_float=str)
        steps[found["step"]] = [found[key] for key in ("loss", "grad_norm", "param_norm", "tokens", "epochs")]
    for line in (run_dir / "events.jsonl").read_text().splitlines():
        found = json.loads(line, parse_float=str)
        if found["event"] == "validation":
            validations[found["step"], found.get("set", "")] = found["loss"]
    return steps, validations


def same_curve(local, other, what):
    expect(len(curve(local)[0]) == STEPS and curve(local)[1], f"{STEPS} steps and validations: {curve(local)}")
    expect(curve(local) == curve(other), f"{what}: {curve(local)} and {curve(other)}")


def train_killed(config, run_dir, environment):
    process = subprocess.Popen([SKEIN, "train", str(config)], env={**os.environ, **environment},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 600
    while time.time() < deadline and process.poll() is None and not (run_dir / "checkpoints/step-00000004").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run(["train", config], environment)


def same_answers(folder, local, remote, environment):
    sampled = ["data", "sample", "--step", "3", "--json"]
    expect(json_of([*sampled, local]) == json_of([*sampled, remote], environment), "the rows are the same")
    for name in ("web", "code.arrow"):
        words = ["--tokenizer", folder / "data" / "tokenizer", "--json"]
        here = json_of(["data", "stats", folder / "data" / name, *words])
        there = json_of(["data", "stats", f"s3://texts/data/{name}", *words], environment)
        expect(here == there, f"the statistics of {name} are the same: {here} and {there}")
    for choice in (["--document", "4321", "--around", "1"], ["--find", "loom77 "]):
        here = json_of(["data", "show", folder / "data" / "web", *choice, "--json"])
        there = json_of(["data", "show", "s3://texts/data/web/", *choice, "--json"], environment)
        expect(here == there and "source" in here["documents"][0], f"documents and origins: {here} and {there}")
    run(["data", "tokenizer", "--vocab-size", "320", "--out", folder / "learnt", "s3://texts/data/code.arrow"],
        environment)
    for file in (folder / "learnt").iterdir():
        expect(file.read_bytes() == (folder / "data/tokenizer" / file.name).read_bytes(), f"{file} is the same")
    planned = json_of(["plan", remote, "--json"], environment)
    expect(planned["per_rank"] == json_of(["plan", local, "--json"])["per_rank"], "the plans are the same")


def completions(folder, store, environment):
    """Conversations, whose loss spans are read from the store as well."""
    lines = [json.dumps({"prompt": f"what is {i}?", "completion": "a number " * (i % 7 + 1)}) for i in range(900)]
    (folder / "chat.jsonl").write_text("\n".join(lines) + "\n")
    run(["data", "ingest", "--chat-template", "default", "--out", folder / "chat.arrow", folder / "chat.jsonl"])
    store.client.upload_file(str(folder / "chat.arrow"), "texts", "chat.arrow")
    for name, place in (("here", folder), ("there", "s3://texts")):
        config = folder / f"chat_{name}.toml"
        config.write_text(write_config(config, folder / "data", folder / name).read_text().split("[data]")[0] + f"""
[data]
train = "{place}/chat.arrow"
tokenizer = "{folder}/data/tokenizer"
sequence_length = 128
loss_on = "completion"
[batch]
global_sequences = 4
""")
    here, there = folder / "chat_here.toml", folder / "chat_there.toml"
    sampled = ["data", "sample", "--step", "3", "--json"]
    rows = json_of([*sampled, here])
    expect(rows == json_of([*sampled, there], environment), "completions of an object are those of the file")
    expect(any(label == -100 for row in rows["rows"] for label in row["labels"][:-1]), "prompts have no label")
    run(["train", here, "--set", f"run.steps={STEPS // 2}"])
    run(["train", there, "--set", f"run.dir={folder / 'here'}"], environment)
    run(["train", there, "--set", "run.steps=2"], environment)


def refusals(folder, remote, environment, store):
    def said(words, expected, what):
        found = run(words, environment, expected)
        expect(what in found, f"{words}: expected '{what}' in: {found}")

    said(["data", "stats", "s3://texts/nothing"], 1, "s3://texts/nothing: no such object")
    said(["data", "stats", "s3://nowhere/web"], 1, "there is no bucket")
    said(["data", "stats", "gs://texts/web"], 2, "gs:// is not known")
    said(["data", "stats", "s3://texts/data/tokenizer"], 1, "without .arrow files")
    sample = ["data", "sample", remote, "--step", "1", "--json"]
    text = remote.read_text()
    remote.write_text(text.replace("data/code.arrow", "data/cod.arrow"))
    said(sample, 2, "data.source: s3://texts/data/cod.arrow: no such object")
    remote.write_text(text.replace("data/tokenizer", "data/web"))
    said(sample, 2, "data.tokenizer: s3://texts/data/web")
    remote.write_text(text.replace("hidden_size = 32", 'hf_config = "s3://texts/data/config.json"'))
    said(sample, 2, "hf_config in [model] is 's3://texts/data/config.json'")
    remote.write_text(text)
    store.client.delete_object(Bucket="texts", Key="data/web/part-00001-of-00003.arrow")
    said(sample, 2, "holds 2 of the 3 files")


def replaced_while_it_is_read(folder, store):
    """The proxy replaces the object between two of its parts."""
    bodies = [(folder / "data/web" / f"part-0000{i}-of-00003.arrow").read_bytes() for i in (0, 2)]

    def replace(method, path):
        if method == "GET" and path.endswith("changing.arrow"):
            replace.count += 1
            if replace.count == 4:
                store.client.put_object(Bucket="texts", Key="changing.arrow", Body=bodies[1])

    replace.count = 0
    store.client.put_object(Bucket="texts", Key="changing.arrow", Body=bodies[0])
    proxy = FaultyProxy(store.port, period=1 << 30, on_request=replace)
    words = ["data", "stats", "--tokenizer", folder / "data/tokenizer", "s3://texts/changing.arrow"]
    said = run(words, {"AWS_ENDPOINT_URL": proxy.url}, expected=1)
    expect("s3://texts/changing.arrow: replaced while it was read" in said, f"a replaced object: {said}")


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        folder = pathlib.Path(name)
        os.environ["TMPDIR"] = name
        store = moto_store.Store(folder)
        make_corpora(folder / "data")
        store.upload(folder / "data", "data")
        local = write_config(folder / "local.toml", folder / "data", folder / "local")
        remote = write_config(folder / "remote.toml", "s3://texts/data", folder / "remote")
        run(["train", local])

        proxy = FaultyProxy(store.port, period=9, faults=("slow_down", "reset", "cut"))
        faulty, calm = {"AWS_ENDPOINT_URL_S3": proxy.url}, {"AWS_ENDPOINT_URL": store.url}
        run(["train", remote], faulty)
        same_curve(folder / "local", folder / "remote", "the losses of a faulty store are those of the files")
        expect(all(proxy.counts[fault] > 0 for fault in ("slow_down", "reset", "cut")), f"faults: {proxy.counts}")
        print(f"{proxy.num_requests} requests, of them struck: {proxy.counts}")
        kept = (folder / "remote/config.toml").read_text()
        expect('path = "s3://texts/data/web' in kept.replace("'", '"'), f"the run keeps the URLs: {kept}")

        killed = write_config(folder / "killed.toml", "s3://texts/data", folder / "killed")
        train_killed(killed, folder / "killed", calm)
        same_curve(folder / "local", folder / "killed", "after a kill the losses are the same")

        moved = folder / "moved.toml"
        run(["train", write_config(moved, folder / "data", folder / "moved"), "--set", f"run.steps={STEPS // 2}"])
        run(["train", write_config(moved, "s3://texts/data", folder / "moved")], calm)
        expect(curve(folder / "moved")[0] == curve(folder / "local")[0], "a run goes on where its corpora moved to")
        why = ["why", "--step", "5", "--json"]
        here, there = json_of([*why, folder / "local"]), json_of([*why, folder / "remote"], calm)
        expect([d["record"] for d in here["documents"]] == [d["record"] for d in there["documents"]],
               "`why` names the same records")

        same_answers(folder, local, remote, calm)
        completions(folder, store, calm)
        replaced_while_it_is_read(folder, store)
        refusals(folder, remote, calm, store)
        wrong = store.check_credentials()
        said = run(["data", "stats", "s3://texts/data/web"], wrong, expected=1)
        expect("AWS_ACCESS_KEY_ID" in said, f"credentials that are refused: {said}")
        store.stop()
    print("losses, rows and documents are the same")


main()
