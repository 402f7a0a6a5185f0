#!/usr/bin/env python3
"""Compiled programs in a bucket (device.compile_cache = s3://…): what one machine compiled, another one finds, and
keeps on its own disk. A bucket that is not there costs a line, and no run.

  compile_test.py SKEIN FOLDER

Ends with 77, skipped, where moto or a PJRT plugin is not installed.
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile

import moto_store
from moto_store import expect

SKEIN = str(pathlib.Path(sys.argv[1]).resolve())
UNPACKED = ".deps/lammps-jax-pjrt-cpu-plugin-0.11.2/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"
PLUGIN = os.environ.get("SKEIN_PJRT_PLUGIN") or str(moto_store.ROOT / UNPACKED)
COMPILED = re.compile(r"compiled (\d+) programs? for .* in [\d.]+ s, (\d+) of them from the cache \((.*?)\) in")


def make_data(folder):
    words = "the loom holds threads of many colours and".split()
    with (folder / "documents.jsonl").open("w") as file:
        for i in range(3000):
            file.write('{"text": "%s"}\n' % " ".join(f"{words[(i + j) % 8]}{i * j % 99}" for j in range(20)))
    for words in (["ingest", "--out", folder / "corpus.arrow", folder / "documents.jsonl"],
                  ["tokenizer", "--vocab-size", "320", "--out", folder / "tokenizer", folder / "corpus.arrow"]):
        moto_store.run(SKEIN, ["data", *map(str, words)])


def start(folder, machine, cache):
    """Programs, how many the cache had, what is said of it, and all output, of a start on that machine."""
    settings = {"run.dir": folder / "run", "run.steps": 1, "data.train": folder / "corpus.arrow",
                "data.tokenizer": folder / "tokenizer", "data.sequence_length": 32, "batch.global_sequences": 2,
                "model.hidden_size": 32, "model.intermediate_size": 64, "model.num_hidden_layers": 1,
                "model.num_attention_heads": 2, "checkpoint.every_steps": 0, "precision.mode": "fp32",
                "device.kind": "pjrt", "device.pjrt_plugin": PLUGIN, "device.compile_cache": cache}
    (folder / "empty.toml").touch()
    shutil.rmtree(folder / "run", ignore_errors=True)
    words = ["train", str(folder / "empty.toml")]
    words += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    said = moto_store.run(SKEIN, words, {"SKEIN_CACHE": str(folder / machine)})
    found = COMPILED.search(said)
    expect(found is not None, f"no line on the programs: {said}")
    return int(found[1]), int(found[2]), found[3], said


def main():
    if not os.path.exists(PLUGIN):
        print("skipped: no PJRT plugin: scripts/test_tools.sh unpacks one")
        sys.exit(77)
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as temporary:
        folder = pathlib.Path(temporary)
        store = moto_store.Store(folder)
        os.environ["AWS_ENDPOINT_URL"] = store.url
        make_data(folder)
        bucket = "s3://texts/compiled/"
        programs, cached, place, said = start(folder, "first", bucket)
        expect(cached == 0 and place == f"{folder}/first/compiled and s3://texts/compiled", f"{cached} in {place}")
        objects = store.names("texts", "compiled/")
        expect(sorted(os.listdir(folder / "first/compiled")) == objects, f"{objects} in the bucket")
        expect(len(objects) == programs, f"{programs} programs and {objects}")

        programs, cached, place, said = start(folder, "second", bucket)
        expect(cached == programs, f"{cached} of {programs}")
        expect(sorted(os.listdir(folder / "second/compiled")) == objects, "the second machine keeps them")
        for name in objects:
            store.client.delete_object(Bucket="texts", Key="compiled/" + name)
        programs, cached, place, said = start(folder, "second", bucket)
        expect(cached == programs, f"{cached} of {programs} from its own disk")

        programs, cached, place, said = start(folder, "third", "s3://nobody/compiled")
        expect(cached == 0, f"{cached} of {programs}")
        expect(said.count("s3://nobody/compiled: the compiled program") == 1, said)
        programs, cached, place, said = start(folder, "third", "s3://nobody/compiled")
        expect(cached == programs, f"{cached} of {programs} from its own disk")
        print("ok: compiled programs in a bucket")


if __name__ == "__main__":
    main()
