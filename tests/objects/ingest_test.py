#!/usr/bin/env python3
"""Ingests, cleans and removes duplicates from a store that speaks S3's protocol: moto, whose objects AWS's
own client writes, behind a proxy that refuses, resets, cuts and stalls. Corpora must be those of the same
files on the disk.

  ingest_test.py SKEIN FOLDER

Ends with 77, skipped, where moto is not installed.
"""
import gzip
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
from faulty_proxy import FAULTS, FaultyProxy
from moto_store import expect

PARQUET = moto_store.ROOT / "skein/data/corpus/testdata/documents.parquet"
SKEIN = str(pathlib.Path(sys.argv[1]).resolve())


def run(words, environment=None, expected=0):
    return moto_store.run(SKEIN, words, environment, expected)


def made_text(random, num_words):
    words = ("the", "loom", "holds", "threads", "of", "many", "colours", "naïve", "織機", "and")
    return " ".join(random.choice(words) + str(random.randrange(10000)) for _ in range(num_words))


def make_files(folder):
    """Files of every kind, one of them of several parts of a reader (8 MiB)."""
    seeded = random.Random(15)
    (folder / "inner").mkdir(parents=True)
    lines = "".join(json.dumps({"text": made_text(seeded, 120)}) + "\n" for _ in range(32000))
    (folder / "large.jsonl").write_text(lines)
    expect(len(lines) > 3 * (8 << 20), "the large file has several parts")
    for i in range(12):
        part = "".join(json.dumps({"text": made_text(seeded, 50)}) + "\n" for _ in range(300))
        with gzip.GzipFile(folder / "inner" / f"part{i}.jsonl.gz", "wb", mtime=0) as file:
            file.write(part.encode())
    (folder / "array.json").write_text(json.dumps([{"text": made_text(seeded, 9)} for _ in range(20)], indent=1))
    (folder / "table.csv").write_text("id,text\n" + "".join(f"{i},{made_text(seeded, 9)}\n" for i in range(20)))
    (folder / "alone.txt").write_text(made_text(seeded, 200))
    (folder / "no_ending").write_text(made_text(seeded, 200))
    (folder / "table.parquet").write_bytes(PARQUET.read_bytes())
    # Pointers of Git LFS are passed over, here and there.
    # Longer than the body of a refusal, which would not fit where so small an object is expected.
    extensions = "".join(f"ext-{i}-none sha256:{i:064}\n" for i in range(10))
    for name in ("pointer.jsonl", "pointer.parquet", "pointer.arrow", "pointer.txt", "pointer"):
        (folder / name).write_text(f"version https://git-lfs.github.com/spec/v1\n{extensions}oid sha256:4d7a\nsize 9\n")
    source = folder.parent / "source.jsonl"
    source.write_text("".join(json.dumps({"text": made_text(seeded, 40)}) + "\n" for _ in range(3000)))
    run(["data", "ingest", "--out", str(folder / "corpus.arrow"), str(source)])
    (folder / "corpus.arrow.sources").unlink()


def same_of_objects(command, folder, environment):
    """The corpus that `command` makes of the files, which must be that of the objects, too."""
    outs = [folder / f"{command[1]}.{of}.arrow" for of in ("files", "objects")]
    run([*command, "--out", str(outs[0]), str(folder / "web")])
    said = run([*command, "--out", str(outs[1]), "s3://texts/web"], environment)
    expect("were repeated" in said, f"{command[1]} says that requests were repeated: {said}")
    corpora = [out.read_bytes() for out in outs]
    expect(corpora[0] == corpora[1], f"{command[1]}: the corpus is that of the files")
    return corpora[0]


def killed_and_restarted(environment, folder, expected):
    out = folder / "killed.arrow"
    words = [SKEIN, "data", "ingest", "--out", str(out), "--threads", "1", "s3://texts/web"]
    process = subprocess.Popen(words, env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    work = folder / "killed.arrow.work"
    deadline = time.time() + 600
    while time.time() < deadline and process.poll() is None and not list(work.glob("**/*.json")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    expect(not out.exists() or out.read_bytes() == expected, "a killed ingestion leaves no corpus, or a whole one")
    run(["data", "ingest", "--out", str(out), "s3://texts/web"], environment)
    expect(out.read_bytes() == expected, "after a kill the corpus is the same")


def refusals(environment, folder):
    def said(url, **changed):
        words = ["data", "ingest", "--out", str(folder / "none.arrow"), url]
        return run(words, {**environment, **changed}, expected=1 if url.startswith("s3") else 2)

    expect("no such object" in said("s3://texts/nothing"), "a key that is not there")
    expect('there is no bucket "nowhere"' in said("s3://nowhere/nothing"), "a bucket that is not there")
    expect("gs:// is not known" in said("gs://texts/web"), "another kind of URL")
    expect(not (folder / "none.arrow").exists(), "no corpus of nothing")


def refused_credentials(folder, store):
    words = ["data", "ingest", "--out", str(folder / "none.arrow"), "s3://texts/web"]
    said = run(words, store.check_credentials(), expected=1)
    expect("AWS_ACCESS_KEY_ID" in said, "credentials that are refused")


def changed_while_read(folder, store):
    """A table whose column is asked for when another object has its name, or none, or the store has had enough."""
    table = PARQUET.read_bytes()

    def said(change):
        store.client.put_object(Bucket="texts", Key="table.parquet", Body=table)
        num_read = 0

        def on_request(method, path):
            nonlocal num_read
            num_read += method == "GET" and path.startswith("/texts/table.parquet")
            if method == "GET" and num_read == 2:  # the first is of its footer
                change()

        environment = {"AWS_ENDPOINT_URL": FaultyProxy(store.port, on_request=on_request).url}
        out = str(folder / "changed.arrow")
        words = run(["data", "ingest", "--out", out, "s3://texts/table.parquet"], environment, expected=1)
        expect("damaged" not in words, f"a store is no damage: {words}")
        return words

    found = said(lambda: store.client.put_object(Bucket="texts", Key="table.parquet", Body=table + b" "))
    expect("replaced while it was read" in found, f"a table that is replaced: {found}")
    found = said(lambda: store.client.delete_object(Bucket="texts", Key="table.parquet"))
    expect("no such object" in found, f"a table that is removed: {found}")


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as name:
        folder = pathlib.Path(name)
        store = moto_store.Store(folder)
        make_files(folder / "web")
        run(["data", "ingest", "--out", str(folder / "local.arrow"), str(folder / "web")])
        expected = (folder / "local.arrow").read_bytes()

        store.upload(folder / "web", "web")
        calm = {"AWS_ENDPOINT_URL": store.url}
        run(["data", "ingest", "--out", str(folder / "calm.arrow"), "s3://texts/web/"], calm)
        expect((folder / "calm.arrow").read_bytes() == expected, "the corpus of a calm store is that of the files")

        proxy = FaultyProxy(store.port, period=4)
        faulty = {"AWS_ENDPOINT_URL_S3": proxy.url}
        said = run(["data", "ingest", "--out", str(folder / "faulty.arrow"), "s3://texts/web"], faulty)
        expect((folder / "faulty.arrow").read_bytes() == expected, "the corpus of a faulty store is that of the files")
        expect(all(proxy.counts[fault] > 0 for fault in FAULTS), f"every fault struck: {proxy.counts}")
        expect("were repeated" in said, f"the report says that requests were repeated: {said}")
        print(f"{proxy.num_requests} requests, of them struck: {proxy.counts}")
        origin = run(["data", "show", str(folder / "faulty.arrow"), "--document", "0"])
        expect("s3://texts/web/" in origin, f"documents come from their objects: {origin}")

        same_of_objects(["data", "dedup"], folder, faulty)
        rules = [word for rule in ("fineweb", "c4", "gopher_enough_stop_words") for word in ("--set", rule + "=off")]
        cleaned = same_of_objects(["data", "clean", "--repair", *rules], folder, faulty)
        expect(len(expected) // 2 < len(cleaned) < len(expected), "cleaning drops some documents, and keeps some")

        killed_and_restarted(calm, folder, expected)
        changed_while_read(folder, store)
        refusals(calm, folder)
        refused_credentials(folder, store)
        store.stop()
    print("the corpora are the same")


main()
