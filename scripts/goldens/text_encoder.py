#!/usr/bin/env python3
"""Makes skein/evaluate/testdata/encode/ids.json: which tokens lm-evaluation-harness's `hf` model gives to a tiny model
for pairs of texts, for whole texts and for prompts, with the tokenizers of skein/data/tokenizer/testdata.

    pip install lm-eval[hf]==0.4.13 torch transformers sentencepiece
    scripts/goldens/text_encoder.py
"""

import json
from pathlib import Path

import torch
import transformers
from lm_eval import utils
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

ROOT = Path(__file__).resolve().parents[2]
TOKENIZERS = ROOT / "skein" / "data" / "tokenizer" / "testdata"
OUT = ROOT / "skein" / "evaluate" / "testdata" / "encode" / "ids.json"
MAX_LENGTH = 24

PAIRS = [("Question: what is it?\nAnswer:", " a bird"), ("Question: what is it?\nAnswer: ", "a bird"),
         ("two  blanks  ", " and more"), ("line\n", "next"), ("tab\t \u00a0", "x"), ("", " alone"), ("", "alone"),
         ("", "<s>x"), ("   ", "x"), ("word", "s"), ("Größe", "nordnung"), ("日本", "語"), ("a", "🙂"),
         ("<s>spelt", " beginning"), ("<|begin_of_text|>spelt", " beginning"), ("<|endoftext|>spelt", " beginning"),
         ("the bird that sat in the tree by the river sang and sang " * 3, " until the evening came"),
         ("short", " the bird that sat in the tree by the river")]
TEXTS = ["", "one", " one two three", "the bird that sat in the tree by the river sang " * 8, "Größe 日本語 🙂\n" * 12]
PROMPTS = ["Question: what is it?\nAnswer:", "", "the bird that sat in the tree by the river sang " * 4]
MAX_NEW_TOKENS = 9


def recorded(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if "llama3" in str(folder):
        tokenizer.bos_token = "<|begin_of_text|>"  # as Llama 3's tokenizer_config.json has it
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16,
                                      num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=MAX_LENGTH)
    model = HFLM(pretrained=transformers.LlamaForCausalLM(config), tokenizer=tokenizer, max_length=MAX_LENGTH)

    seen = []
    model._loglikelihood_tokens = lambda requests, **_: seen.extend(requests) or [(0.0, True)] * len(requests)
    pairs = []
    for context, continuation in PAIRS:
        seen.clear()
        try:
            model.loglikelihood([Instance("loglikelihood", {}, (context, continuation), 0)], disable_tqdm=True)
        except IndexError:
            continue
        (_, before, after), = seen
        # What the model is given and what is scored, as _loglikelihood_tokens cuts them.
        tokens = (before + after)[-(MAX_LENGTH + 1):]
        is_given = len(before) > 0 and 0 < len(after) <= MAX_LENGTH
        pairs.append({"context": context, "continuation": continuation,
                      "tokens": tokens if is_given else None,
                      "score_from": len(tokens) - len(after) if is_given else None})
    rolling = []
    for text in TEXTS:
        windows = map(utils.make_disjoint_window,
                      utils.get_rolling_token_windows(token_list=model.tok_encode(text),
                                                      prefix_token=model.prefix_token_id,
                                                      max_seq_len=MAX_LENGTH, context_len=1))
        rolling.append({"text": text, "windows": [{"tokens": (before + after)[-(MAX_LENGTH + 1):], "scored": len(after)}
                                                  for before, after in windows]})
    prompts = []
    for prompt in PROMPTS:
        ids, mask = model.tok_batch_encode([prompt], left_truncate_len=MAX_LENGTH - MAX_NEW_TOKENS)
        prompts.append({"prompt": prompt, "tokens": ids[0].tolist()})
    return {"pairs": pairs, "rolling": rolling, "prompts": prompts}


def main():
    torch.manual_seed(0)
    names = ["byte_level/gpt2", "byte_level/llama3", "byte_level/qwen2"]
    made = {"max_length": MAX_LENGTH, "max_new_tokens": MAX_NEW_TOKENS,
            "tokenizers": {name: recorded(TOKENIZERS / name) for name in names}}
    OUT.write_text(json.dumps(made, ensure_ascii=False) + "\n")


main()
