#!/usr/bin/env python3
"""Writes skein/data/tokenizer/testdata/models/folders.json: what transformers makes of folders that add tokens to a
tokenizer.model, and of folders whose files name EOS in different places. Needs transformers 5; no test runs this.

The model is testdata/models/llama/tokenizer.model; the other files of a folder are in the golden:
  [{"name", "files": {name: text}, "added_to_json": [added tokens], "eos", "tokens",
    "ids": [{"text", "text_ids", "parsed_ids"}]}]
`added_to_json`: the folder has the tokenizer.json that `skein data tokenizer --from-model` writes, with these besides.
"""
import json
import pathlib
import shutil
import subprocess
import tempfile

from transformers import AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "skein/data/tokenizer/testdata/models"
TEXTS = ["<think>she liked</think> to play", "to play <think> x", "hi<think>she", " <think>", "<think>", "a  b<think>  c",
         "<|im_start|>user\nhi<|im_end|>\n<think>", "<s>a</s>", "no added token here", "<think><think>", "naïve <think>漢字", "<s> a </s>  b"]


def added(id, content, special=False, normalized=False, rstrip=False):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": rstrip, "normalized": normalized,
            "special": special}


def decoder(tokens):
    return {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in tokens}


def folders(n):
    own = [added(0, "<unk>", True), added(1, "<s>", True), added(2, "</s>", True)]
    chat = [added(n, "<|im_start|>", True), added(n + 1, "<|im_end|>", True), added(n + 2, "<think>")]
    names = {"bos_token": "<s>", "eos_token": "<|im_end|>", "unk_token": "<unk>", "add_bos_token": True}
    llama = dict(names, tokenizer_class="LlamaTokenizer")
    fast = dict(names, tokenizer_class="PreTrainedTokenizerFast")
    ids = {token["content"]: token["id"] for token in chat}
    yield "decoder", {"tokenizer_config.json": dict(llama, legacy=False, added_tokens_decoder=decoder(own + chat))}, None
    yield "legacy", {"tokenizer_config.json": dict(llama, legacy=True, added_tokens_decoder=decoder(own + chat))}, None
    yield "added_tokens.json", {"tokenizer_config.json": dict(llama, eos_token="</s>"), "added_tokens.json": ids,
                                "special_tokens_map.json": dict(names, additional_special_tokens=["<|im_start|>"])}, None
    yield "tokenizer.json", {"tokenizer_config.json": fast}, chat
    yield "tokenizer.json normalized", {"tokenizer_config.json": fast}, [*chat[:2], added(n + 2, "<think>", normalized=True)]

    strip = [*own[:2], added(2, "</s>", True, rstrip=True), *chat[:2], added(n + 2, "<think>", rstrip=True)]
    yield "flags of the decoder", {"tokenizer_config.json": dict(llama, legacy=False, added_tokens_decoder=decoder(strip))}, None
    yield "no space", {"tokenizer_config.json": dict(llama, add_prefix_space=False, added_tokens_decoder=decoder(own + chat))}, None
    yield "flags that disagree", {"tokenizer_config.json": dict(fast, added_tokens_decoder=decoder(strip))}, chat


def main():
    goldens = []
    with tempfile.TemporaryDirectory() as scratch:
        plain = pathlib.Path(scratch) / "plain"
        subprocess.run([ROOT / "build/skein", "data", "tokenizer", "--from-model", OUT / "llama", "--out", plain], check=True)
        n = len(json.loads((plain / "tokenizer.json").read_text())["model"]["vocab"])
        for name, files, to_json in folders(n):
            folder = pathlib.Path(scratch) / "folder"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            shutil.copy(OUT / "llama/tokenizer.model", folder)
            for file, content in files.items():
                (folder / file).write_text(json.dumps(content))
            if to_json:
                tokenizer = json.loads((plain / "tokenizer.json").read_text())
                tokenizer["added_tokens"] += to_json
                (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
            judge = AutoTokenizer.from_pretrained(folder)
            goldens.append({
                "name": name, "files": {file: json.dumps(content) for file, content in files.items()}, "added_to_json": to_json or [],
                "eos": judge.eos_token_id, "tokens": len(judge),
                "ids": [{"text": text, "text_ids": judge(text, add_special_tokens=False, split_special_tokens=True)["input_ids"],
                         "parsed_ids": judge(text, add_special_tokens=False)["input_ids"]} for text in TEXTS]})
    (OUT / "folders.json").write_text(json.dumps(goldens, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
