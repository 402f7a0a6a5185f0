#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/models/transformers.json: for which files of Skein's transformers gives, with every
text of ids.json, SentencePiece's ids after BOS. Needs transformers, xxhash; no test runs this.

    scripts/goldens/tokenizer_transformers.py build/skein

    {"transformers", "tokenizers": versions, "models": {model: {"texts": number, "files": {name: xxh3-128}}}}

The test compares the files that Skein writes with these checksums. Whoever changes the files runs this again.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import sentencepiece
import tokenizers
import transformers
import xxhash

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "skein/data/tokenizer/testdata/models"
MODELS = ["llama", "bare", "trim", "symbols"]


def judge(skein, name, folder):
    subprocess.run([skein, "data", "tokenizer", "--from-model", FOLDER / name, "--out", folder], check=True)
    (folder / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    bos = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / name / "tokenizer.model")).bos_id()
    rows = json.loads((FOLDER / "ids.json").read_text())[name]
    for row in rows:
        ids, expected = tokenizer(row["text"])["input_ids"], [bos] * (bos >= 0) + row["ids"]
        if ids != expected:
            sys.exit(f"{name}: {row['text'][:80]!r}: transformers gives {ids[:20]}, SentencePiece {expected[:20]}")
    files = {file: xxhash.xxh3_128((folder / file).read_bytes()).hexdigest()
             for file in ("special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")}
    return {"texts": len(rows), "files": files}


def main():
    skein = pathlib.Path(sys.argv[1]).resolve()
    models = {}
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            models[name] = judge(skein, name, pathlib.Path(folder))
    goldens = {"transformers": transformers.__version__, "tokenizers": tokenizers.__version__, "models": models}
    (FOLDER / "transformers.json").write_text(json.dumps(goldens, indent=1) + "\n")


main()
