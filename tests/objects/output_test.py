#!/usr/bin/env python3
"""Has `skein data` write into a store that speaks S3's protocol (moto): corpora, shards, a deduplicated corpus, a
report and tokenizers, behind a proxy that refuses and resets, and with kills while outputs are sent.

  output_test.py SKEIN FOLDER

Objects must have the bytes of the files that the same command makes in a folder, and a corpus is seen whole or
not at all. Ends with 77, skipped, where moto is not installed.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

import moto_store
from faulty_proxy import FaultyProxy
from moto_store import expect

SKEIN = str(pathlib.Path(sys.argv[1]).resolve())
LARGE = 24 << 20  # of three parts of an upload


class Outputs:
    def __init__(self, folder):
        self.folder = folder
        self.store = moto_store.Store(folder)
        self.endpoint = self.store.url
        self.temporary = folder / "tmp"  # where outputs are made
        self.temporary.mkdir()

    def run(self, words, expected=0, **variables):
        return moto_store.run(SKEIN, words, {"AWS_ENDPOINT_URL": self.endpoint, "TMPDIR": str(self.temporary),
                                             **variables}, expected)

    def bytes_of(self, key):
        return self.store.client.get_object(Bucket="texts", Key=key)["Body"].read()

    def expect_same(self, prefix, folder):
        """The objects under the prefix are the files of the folder, and nothing is left where they were made."""
        names = self.store.names("texts", prefix)
        expect(names == sorted(path.name for path in folder.iterdir()), f"{prefix} holds {names}")
        for name in names:
            expect(self.bytes_of(prefix + name) == (folder / name).read_bytes(), f"{prefix}{name} is the file")
        left = [str(path) for path in self.temporary.rglob("*") if path.is_file()]
        expect(not left, f"nothing is left where outputs are made: {left}")


def make_texts(folder):
    seeded = random.Random(9)
    folder.mkdir()
    for i in range(4):
        with (folder / f"part{i}.jsonl").open("w") as file:
            size = 0
            while size < LARGE // 4:
                text = " ".join(f"thread{seeded.randrange(3000)}" for _ in range(seeded.randrange(20, 400)))
                size += file.write(json.dumps({"text": text}) + "\n")


def corpora(outputs, texts):
    """Of all commands that make them."""
    for words, name in ((["ingest"], "one"), (["ingest", "--shards", "3"], "shards"),
                        (["dedup", "--near", "off"], "dedup"), (["dedup", "--near", "off", "--shards", "2"], "parts")):
        files = outputs.folder / name
        inside = "" if "--shards" in words else "/corpus.arrow"
        outputs.run(["data", *words, "--out", f"{files}{inside}", str(texts)])
        said = outputs.run(["data", *words, "--out", f"s3://texts/{name}{inside}", str(texts)])
        expect(f"made in {outputs.temporary}" in said, f"it says where it is made: {said}")
        outputs.expect_same(f"{name}/", files)
        said = outputs.run(["data", *words, "--out", f"s3://texts/{name}{inside}", str(texts)])
        expect("was finished before" in said, f"nothing is made again: {said}")
    said = outputs.run(["data", "ingest", "--text-column", "other", "--out", "s3://texts/one/corpus.arrow", str(texts)],
                       expected=2)
    expect("--overwrite" in said, f"nothing is replaced by accident: {said}")


def from_bucket_to_bucket(outputs):
    """A corpus that came from a bucket goes to another place in it, and its documents keep their origins."""
    words = ["data", "ingest", "--out", "s3://texts/one/again.arrow", "--validation-out", "s3://texts/one/held.arrow"]
    said = outputs.run([*words, "s3://texts/one/"])
    expect("held out for validation" in said, f"both are made: {said}")
    outputs.run([*words, "--overwrite", "s3://texts/one/"])
    said = outputs.run([*words, "--overwrite", "s3://texts/one/"])
    expect("the output" in said, f"outputs under the input's name are no input: {said}")
    shown = outputs.run(["data", "show", "s3://texts/one/again.arrow", "--document", "0"])
    expect("part0.jsonl" in shown, f"documents come from the first files: {shown}")
    names = outputs.store.names("texts", "one/")
    expect({"again.arrow", "again.arrow.sources", "held.arrow", "held.arrow.sources"} < set(names), f"{names}")


def report_and_tokenizers(outputs, texts):
    off = [word for filter in ("fineweb", "c4", "gopher_quality") for word in ("--set", filter + "=off")]
    page = ["--report", "s3://texts/clean/page.html"]
    outputs.run(["data", "clean", *off, *page, "--out", "s3://texts/clean/corpus.arrow", str(texts)])
    expect(b"<html" in outputs.bytes_of("clean/page.html"), "the report is a page")
    for kind in ("sentencepiece", "byte-level"):
        words = ["data", "tokenizer", "--kind", kind, "--vocab-size", "280", "--sample", "1MiB"]
        corpus = "s3://texts/one/corpus.arrow"
        outputs.run([*words, "--out", str(outputs.folder / kind), corpus])
        outputs.run([*words, "--out", "s3://texts/tokenizer", "--overwrite", corpus])
        outputs.expect_same("tokenizer/", outputs.folder / kind)  # nothing of the one before is left
        said = outputs.run([*words, "--out", "s3://texts/tokenizer", corpus], expected=2)
        expect("holds a tokenizer already" in said, f"a tokenizer is not replaced by accident: {said}")
    shown = outputs.run(["data", "stats", "s3://texts/one/corpus.arrow", "--tokenizer", "s3://texts/tokenizer"])
    expect("tokens" in shown, f"it is one: {shown}")


def faults(outputs, texts):
    proxy = FaultyProxy(outputs.store.port, period=2, faults=("slow_down", "reset"))
    calm, outputs.endpoint = outputs.endpoint, proxy.url
    outputs.run(["data", "ingest", "--out", "s3://texts/faulty/corpus.arrow", str(texts)])
    outputs.endpoint = calm
    struck = {fault: count for fault, count in proxy.counts.items() if count}
    expect(len(struck) == 2, f"faults struck: {proxy.counts}")
    outputs.expect_same("faulty/", outputs.folder / "one")
    print(f"sending behind faults: {proxy.num_requests} requests, of them struck: {struck}")


def kills(outputs, texts):
    """Before and after every request that changes something, one kill each; then the same command ends the work."""
    words = ["data", "ingest", "--out", "s3://texts/killed/corpus.arrow", str(texts)]
    num_kills = 0
    while True:
        wanted, seen, process = num_kills, [0], None

        def watch(after):
            seen[0] += 1
            if seen[0] - 1 == wanted and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                if not after:
                    raise ConnectionError("the request does not come to the store")

        proxy = FaultyProxy(outputs.store.port, watch=watch)
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.url, "TMPDIR": str(outputs.temporary)}
        process = subprocess.Popen([SKEIN, *words], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        code = process.wait()
        names = outputs.store.names("texts", "killed/")
        if "corpus.arrow" in names:
            outputs.run(["data", "stats", "s3://texts/killed/corpus.arrow"])
        if code == 0:
            break
        expect(code == -signal.SIGKILL, f"it was killed: {code}")
        num_kills += 1
        said = outputs.run(words)
        expect("has been sent now" in said or "was finished before" in said, f"what was made is sent: {said}")
        outputs.expect_same("killed/", outputs.folder / "one")
        for name in ("corpus.arrow", "corpus.arrow.sources"):
            outputs.store.client.delete_object(Bucket="texts", Key="killed/" + name)
    expect(num_kills >= 8, f"there were {num_kills} kills")
    outputs.expect_same("killed/", outputs.folder / "one")
    print(f"{num_kills} kills while sending: what was made was sent")


def a_file_and_an_object(outputs, texts):
    """The corpus is there before what was held out of it is sent: a kill between leaves that to the next try."""
    words = ["data", "ingest", "--out", str(outputs.folder / "mixed.arrow"),
             "--validation-out", "s3://texts/mixed/held.arrow", str(texts)]
    process = None

    def watch(after):
        process.send_signal(signal.SIGKILL)
        process.wait()
        raise ConnectionError("the request does not come to the store")

    proxy = FaultyProxy(outputs.store.port, watch=watch)
    environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.url, "TMPDIR": str(outputs.temporary)}
    process = subprocess.Popen([SKEIN, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    expect(process.wait() == -signal.SIGKILL, "it was killed")
    expect((outputs.folder / "mixed.arrow").exists(), "one of the two is there")
    said = outputs.run(words)
    expect("has been sent now" in said, f"the other is sent: {said}")
    outputs.run(["data", "stats", "s3://texts/mixed/held.arrow"])
    said = outputs.run(words)
    expect("was finished before" in said, f"both are there: {said}")


def refusals(outputs, texts):
    def said(out, *more, code=2, **variables):
        return outputs.run(["data", "ingest", "--out", out, *more, str(texts)], expected=code, **variables)

    expect("no bucket" in said("s3://nowhere/corpus.arrow"), "a bucket that is not there")
    expect("is a folder" in said("s3://texts/"), "a bucket, and no object in it")
    expect("is a folder" in said("s3://texts/new/"), "a name that ends in a slash")
    expect("in a bucket" in said(str(outputs.folder / "x.arrow"), "--work", "w"), "--work of a file")
    said_divided = outputs.run(["data", "dedup", "--shard-index", "0/2", "--out", "s3://texts/d.arrow", str(texts)],
                               expected=2)
    expect("--work" in said_divided, f"machines need a folder that all see: {said_divided}")
    wrong = outputs.store.check_credentials()
    expect("AWS_ACCESS_KEY_ID" in said("s3://texts/new.arrow", code=1, **wrong), "credentials that are refused")


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        outputs = Outputs(pathlib.Path(name))
        texts = outputs.folder / "texts"
        make_texts(texts)
        corpora(outputs, texts)
        from_bucket_to_bucket(outputs)
        report_and_tokenizers(outputs, texts)
        faults(outputs, texts)
        kills(outputs, texts)
        a_file_and_an_object(outputs, texts)
        refusals(outputs, texts)
        outputs.store.stop()
    print("what lies in the bucket is what lies in folders")


main()
