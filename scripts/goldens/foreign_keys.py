"""Writes skein/base/text/testdata/foreign_keys.json: the keys that transformers writes and reads of its files.

    python scripts/goldens/foreign_keys.py      transformers 5.24
"""

import inspect
import json
import pathlib
import tempfile

import transformers
from transformers import GenerationConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

root = pathlib.Path(__file__).resolve().parents[2]
data = root / "skein" / "data" / "tokenizer" / "testdata" / "byte_level" / "llama3"
found = {"transformers": transformers.__version__, "config": {}}
for family in (LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config):
    config = family()
    # Of a long list of layers one says as much.
    values = {k: v[:1] if isinstance(v, list) else v for k, v in config.to_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        written = json.loads((pathlib.Path(folder) / "config.json").read_text())
    values.update({k: None for k in written if k not in values})
    found["config"][config.model_type] = values
found["generation_config"] = sorted(GenerationConfig().to_dict())

keys, special, tokenizer_json = set(), set(), set()
for name in ("TokenizersBackend", "PreTrainedTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer", "LlamaTokenizer"):
    kind = getattr(transformers, name)
    keys.update(inspect.signature(kind.__init__).parameters)
    with tempfile.TemporaryDirectory() as folder:
        kind.from_pretrained(data).save_pretrained(folder)
        folder = pathlib.Path(folder)
        keys.update(json.loads((folder / "tokenizer_config.json").read_text()))
        tokenizer_json.update(json.loads((folder / "tokenizer.json").read_text()))
        if (folder / "special_tokens_map.json").exists():
            special.update(json.loads((folder / "special_tokens_map.json").read_text()))
base = transformers.PreTrainedTokenizerBase
special.update(base.SPECIAL_TOKENS_ATTRIBUTES)
keys.update(base.SPECIAL_TOKENS_ATTRIBUTES)
keys -= {"self", "args", "kwargs", "vocab", "merges"}  # of Python, not of the file
found["tokenizer_config"] = sorted(keys)
found["special_tokens_map"] = sorted(special)
found["tokenizer"] = sorted(tokenizer_json)
out = root / "skein" / "base" / "text" / "testdata" / "foreign_keys.json"
out.parent.mkdir(exist_ok=True)
out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
