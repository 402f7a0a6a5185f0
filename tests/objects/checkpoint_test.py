#!/usr/bin/env python3
"""Trains with its checkpoints in a store that speaks S3's protocol (moto), and goes on from there.

  checkpoint_test.py SKEIN FOLDER [--kills N] [--large]

  --kills N   how often the program is killed around a request that changes something (4)
  --large     objects of several parts as well

Losses, norms and exported weights must have the bits of a run whose checkpoints lie in a folder: alone, from a
run folder that was lost, of two workers behind a proxy that refuses, resets, cuts and stalls, and where the
program is killed before and after requests that change something. What the store holds must at any moment be
whole checkpoints and nothing else that could be taken for one. Ends with 77, skipped, without moto.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("objects", "survival")]
import moto_store
from faulty_proxy import FAULTS, FaultyProxy
from moto_store import expect
from supervised import CONFIG, make_data

parser = argparse.ArgumentParser()
parser.add_argument("skein")
parser.add_argument("folder")
parser.add_argument("--kills", type=int, default=4)
parser.add_argument("--large", action="store_true")
ARGS = parser.parse_args()
SKEIN = str(pathlib.Path(ARGS.skein).resolve())
NUMBERS = ("loss", "grad_norm", "param_norm", "tokens")


def run(words, endpoint="", expected=0):
    return moto_store.run(SKEIN, words, {"AWS_ENDPOINT_URL": endpoint} if endpoint else {}, expected)


class Runs:
    """Runs of one configuration in a folder, each with its checkpoints wherever it likes."""

    def __init__(self, folder):
        self.folder = folder
        make_data(SKEIN, str(folder))

    def words(self, name, steps, checkpoints="", workers=1, **settings):
        config = self.folder / f"{name}.toml"
        config.write_text(CONFIG.format(dir=self.folder / name, steps=steps, data=self.folder / "data",
                                        workers=workers, nodes=1, ranks=2, rendezvous="", sequences=2))
        words = ["train", str(config), "--set", "checkpoint.every_steps=4", "--set", "checkpoint.keep=2",
                 "--set", "checkpoint.memory_every_steps=0"]
        if checkpoints:
            words += ["--set", f"checkpoint.dir={checkpoints}"]
        for key, value in settings.items():
            words += ["--set", f"{key.replace('__', '.')}={value}"]
        return words

    def steps(self, name):
        found = {}
        for line in (self.folder / name / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            found[record["step"]] = [record[key] for key in NUMBERS]
        return found

    def export(self, checkpoints, name, endpoint=""):
        out = self.folder / f"{name}.hf"
        said = run(["checkpoint", "export", str(checkpoints), "--out", str(out)], endpoint)
        expect("tokenizer" not in said, f"the tokenizer is found: {said}")
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def steps_of(url, endpoint):
    listed = json.loads(run(["checkpoint", "list", url, "--json"], endpoint))
    return [row["step"] for row in listed["checkpoints"]]


def expect_only_checkpoints(store, prefix, steps):
    """The names in the bucket: a manifest a step, and what it names."""
    names = [name for name in store.names("runs", prefix) if not name.startswith("tokenizer/")]
    expected = set()
    for step in steps:
        folder = f"step-{step:08d}/"
        manifest = store.client.get_object(Bucket="runs", Key=prefix + folder + "manifest.json")["Body"].read()
        files = json.loads(manifest)["files"]
        expected |= {folder + "manifest.json"} | {folder + file["name"] for file in files}
    expect(set(names) == expected, f"the bucket holds {names}, expected {sorted(expected)}")


def alone(runs, store, quiet):
    url = "s3://runs/alone"
    run(runs.words("alone", 12, url), store.url)
    expect(runs.steps("alone") == {step: quiet[step] for step in range(1, 13)}, "the same bits")
    expect(steps_of(url, store.url) == [12, 8], "two checkpoints are kept")
    expect_only_checkpoints(store, "alone/", [8, 12])
    for named in (url, str(runs.folder / "alone")):  # by the bucket, or by the run that saved there
        said = run(["checkpoint", "verify", named], store.url)
        expect(said.count("good") == 2, f"both are good: {said}")
    shutil.rmtree(runs.folder / "alone")  # all that is left is in the bucket
    run(runs.words("elsewhere", 16, url), store.url)
    expect(runs.steps("elsewhere") == {step: quiet[step] for step in range(13, 17)},
           "a run whose folder was lost goes on with the same bits")
    expect(runs.export(url, "alone", store.url) == runs.export(runs.folder / "quiet", "quiet"),
           "the exported model and tokenizer are the same files")


def back_to(runs, store, quiet):
    """From step 12 of 16, on a new timeline: 16 is saved again, over what is there."""
    url = "s3://runs/alone"
    before = store.names("runs", "alone/step-00000016/")
    run(runs.words("again", 16, url, run__resume=url + "/step-00000012"), store.url)
    expect(runs.steps("again")[16] == quiet[16], "the same bits after going back")
    after = store.names("runs", "alone/step-00000016/")
    expect(len(after) == len(before) and after != before, f"step 16 is replaced: {before}, {after}")
    expect_only_checkpoints(store, "alone/", [12, 16])


def damaged(runs, store, quiet):
    prefix = "alone/step-00000016/"
    key = prefix + next(name for name in store.names("runs", prefix) if name.startswith("weights"))
    body = bytearray(store.client.get_object(Bucket="runs", Key=key)["Body"].read())
    body[-1] ^= 1
    store.client.put_object(Bucket="runs", Key=key, Body=bytes(body))
    said = run(["checkpoint", "verify", "s3://runs/alone"], store.url, expected=1)
    expect("DAMAGED" in said and "good" in said, f"one of two is damaged: {said}")
    said = run(runs.words("again", 17, "s3://runs/alone"), store.url)
    expect(runs.steps("again")[17] == quiet[17], f"the run goes on from the one before: {said}")


def workers(runs, store, quiet):
    proxy = FaultyProxy(store.port, period=8)
    patient = {"launch__collective_timeout_s": 60, "launch__hang_timeout_s": 60}
    for steps in (12, 16):
        run(runs.words("two", steps, "s3://runs/two", workers=2, **patient), proxy.url)
    expect(runs.steps("two") == {step: quiet[step] for step in range(1, 17)}, "two workers have the same bits")
    expect(all(proxy.counts[fault] > 0 for fault in FAULTS if fault != "stall"), f"faults struck: {proxy.counts}")
    run(["checkpoint", "verify", "s3://runs/two"], store.url)
    expect(steps_of("s3://runs/two", store.url) == [16, 12], "two checkpoints are kept")
    print(f"two workers: {proxy.num_requests} requests, of them struck: {proxy.counts}")


def large(runs, store):
    """Objects of several parts, and ranges of several parts, behind the proxy."""
    wide = {"model__hidden_size": 512, "model__intermediate_size": 1536, "checkpoint__every_steps": 2}
    run(runs.words("large", 4, **wide))
    proxy = FaultyProxy(store.port, period=5)
    run(runs.words("large_there", 2, "s3://runs/large", **wide), proxy.url)
    sizes = [entry["Size"] for entry in store.client.list_objects_v2(Bucket="runs", Prefix="large/step")["Contents"]]
    expect(max(sizes) > 3 * (10 << 20), f"an object of several parts: {sizes}")
    run(runs.words("large_there", 4, "s3://runs/large", **wide), proxy.url)
    expect(runs.steps("large_there") == runs.steps("large"), "a larger model has the same bits")
    run(["checkpoint", "verify", "s3://runs/large"], store.url)
    expect(not store.client.list_multipart_uploads(Bucket="runs").get("Uploads"), "no upload is left")
    print(f"larger objects: {proxy.num_requests} requests, of them struck: {proxy.counts}")


class Killer:
    """Sends SIGKILL to a program before or after its n-th request that changes something."""

    def __init__(self):
        self.process, self.left, self.after = None, 0, False

    def __call__(self, after):
        if after != self.after:
            return
        self.left -= 1
        if self.left == 0 and self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def kills(runs, store, quiet):
    killer = Killer()
    proxy = FaultyProxy(store.port, watch=killer)
    url, committed, num_killed = "s3://runs/killed", 0, 0
    for number in range(1, ARGS.kills + 1):
        killer.left, killer.after = 1 + number * 5 // 3, bool(number % 2)
        environment = {**os.environ, "AWS_ENDPOINT_URL": proxy.url}
        killer.process = subprocess.Popen([SKEIN, *runs.words("killed", 100, url, checkpoint__every_steps=1,
                                                             run__steps=3 * number)], env=environment,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        code = killer.process.wait()
        num_killed += code == -signal.SIGKILL
        expect(code in (0, -signal.SIGKILL), f"kill {number}: ended with {code}")
        killer.process = None
        is_any = any(name.endswith("manifest.json") for name in store.names("runs", "killed/"))
        steps = steps_of(url, store.url) if is_any else []
        if steps:
            said = run(["checkpoint", "verify", url], store.url)
            expect("DAMAGED" not in said, f"kill {number}: {said}")
        newest = max(steps, default=0)
        expect(newest >= committed, f"kill {number}: step {committed} is lost, {newest} is the newest")
        committed = newest
    expect(num_killed >= ARGS.kills // 2, f"{num_killed} of {ARGS.kills} kills struck")
    last = committed + 2
    run(runs.words("killed", last, url, checkpoint__every_steps=1), store.url)
    found = runs.steps("killed")
    expect(found == {step: quiet[step] for step in range(1, last + 1)}, "after all kills the bits are the same")
    expect_only_checkpoints(store, "killed/", [last - 1, last])
    print(f"{num_killed} kills, {committed} checkpoints")


def refusals(runs, store):
    said = run(runs.words("none", 4, "s3://nowhere/x"), store.url, expected=2)
    expect("checkpoint.dir" in said and "nowhere" in said, f"a bucket that is not there: {said}")
    said = run(["checkpoint", "list", "s3://runs/nothing"], store.url, expected=1)
    expect("s3://runs/nothing" in said, f"nothing there: {said}")
    said = run(runs.words("none", 4, "gs://runs/x"), store.url, expected=2)
    expect("gs:// is not known" in said, f"another kind of store: {said}")
    said = run(runs.words("none", 4, run__dir="s3://runs/x"), store.url, expected=2)
    expect("run.dir" in said, f"a run folder in a bucket: {said}")


def main():
    with tempfile.TemporaryDirectory(dir=ARGS.folder) as name:
        folder = pathlib.Path(name)
        store = moto_store.Store(folder)
        store.client.create_bucket(Bucket="runs")
        runs = Runs(folder)
        run(runs.words("quiet", 16))
        run(runs.words("quiet_on", 60))
        quiet = runs.steps("quiet_on")
        alone(runs, store, quiet)
        back_to(runs, store, quiet)
        damaged(runs, store, quiet)
        workers(runs, store, quiet)
        if ARGS.large:
            large(runs, store)
        kills(runs, store, quiet)
        refusals(runs, store)
        store.stop()
    print("the same bits")


main()
