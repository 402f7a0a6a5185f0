#!/usr/bin/env python3
"""Makes tests/goldens/<family>: what transformers' <Family>ForCausalLM, or of an encoder <Family>ForMaskedLM, computes
for small random models.

    scripts/goldens/decoders.py [FAMILY[/CASE]…]  all of them; needs torch, transformers and safetensors

Every number is float32, eager attention, on a CPU. A case is a folder:
  config.json, model.safetensors   the model, in the older or the newer spelling of config.json
  tokens.json, logprobs.json       input and output of `skein score`; an encoder has none
  texts.json, hidden.safetensors   of an encoder: texts, and the last hidden states of each
  training.json                    100 AdamW steps: the rows (each step takes the next
                                   `rows_per_step`, cyclically; labels are shifted already, -100
                                   where there is none), loss and gradient norm before clipping. Of
                                   an encoder, tokens are masked and labels stand in their places
  first_gradients.safetensors      the gradients of step 1, before clipping
`llama/import_bfloat16` is a folder as save_pretrained writes it, in bfloat16 and several shards; its
log-probabilities are those of the same weights widened to float32; `llama/import_float16` is the same in float16. llama/rope.json holds inverse
frequencies, llama/rope_scaling.json those of types that depend on more: with the length of the text and the attention factor. Prints how far the same training strays when it is computed with float64 weights and
products (norms and the loss stay float32, as transformers has it): the part of a tolerance that
rounding alone uses up.
"""

import json
import logging
import shutil
import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

NUM_STEPS = 100
OPTIMIZER = {
    "learning_rate": 1e-3,
    "beta1": 0.9,
    "beta2": 0.95,
    "epsilon": 1e-5,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


YARN_ROPE = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
             "original_max_position_embeddings": 32, "beta_fast": 16.0, "mscale": 0.7,
             "mscale_all_dim": 1.0}
LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0,
            "original_max_position_embeddings": 48, "short_factor": [1.0, 1.1, 1.25, 1.5],
            "long_factor": [1.0, 1.9, 3.1, 4.2]}


def default_rope(theta=10000.0):
    return {"rope_type": "default", "rope_theta": theta}


# name: (config, sequence length, documents packed into a row, older spelling of config.json)
LLAMA = {
    "multi_head": (
        dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=4, intermediate_size=80,
             vocab_size=128, rms_norm_eps=1e-5, rope_parameters=default_rope()),
        32, False, True),
    "grouped_query_documents": (
        dict(hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64,
             vocab_size=100, rope_parameters=default_rope(500000.0)),
        48, True, False),
    "tied_multi_query": (
        dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=1, intermediate_size=96,
             vocab_size=160, tie_word_embeddings=True, num_hidden_layers=3,
             rope_parameters=default_rope()),
        31, False, True),
    "llama3_rope": (
        dict(hidden_size=32, num_attention_heads=2, num_key_value_heads=1, intermediate_size=72,
             vocab_size=128, max_position_embeddings=256, rope_parameters=LLAMA3_ROPE),
        80, False, False),
    "linear_rope_odd_sizes": (
        dict(hidden_size=40, num_attention_heads=4, num_key_value_heads=2, intermediate_size=52,
             vocab_size=97, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0,
                                             "factor": 2.5}),
        37, False, True),
    "biases_wide_heads_documents": (
        dict(hidden_size=36, num_attention_heads=3, num_key_value_heads=3, head_dim=22,
             intermediate_size=50, vocab_size=101, attention_bias=True, mlp_bias=True,
             tie_word_embeddings=True, rope_parameters=default_rope()),
        45, True, False),
    "yarn_rope": (
        dict(hidden_size=32, num_attention_heads=2, num_key_value_heads=1, intermediate_size=72,
             vocab_size=96, max_position_embeddings=128, rope_parameters=YARN_ROPE),
        72, False, True),
    "longrope": (  # rows take long_factor, the shorter texts of tokens.json short_factor
        dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
             vocab_size=90, max_position_embeddings=128, rope_parameters=LONGROPE),
        64, False, False),
}


QWEN3 = {
    "wide_heads_documents": (
        dict(hidden_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=24,
             intermediate_size=72, vocab_size=120, use_sliding_window=False,
             rope_parameters=default_rope(1000000.0)),
        44, True, False),
    "tied_biases": (
        dict(hidden_size=36, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
             intermediate_size=64, vocab_size=97, num_hidden_layers=3, attention_bias=True,
             tie_word_embeddings=True, rope_parameters=default_rope()),
        33, False, True),
}
QWEN2 = {
    "grouped_query_documents": (
        dict(hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64,
             vocab_size=100, rope_parameters=default_rope(1000000.0)),
        40, True, True),
}
MISTRAL = {
    "wide_heads": (
        dict(hidden_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             intermediate_size=80, vocab_size=110, sliding_window=None,
             rope_parameters=default_rope(1000000.0)),
        36, False, False),
    "window": (  # as long as the longest text of tokens.json, and longer than the rows
        dict(hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
             vocab_size=80, sliding_window=100, rope_parameters=default_rope()),
        40, False, True),
}
EUROBERT = {
    "grouped_query_documents": (
        dict(hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=64,
             vocab_size=100, rms_norm_eps=1e-5, rope_parameters=default_rope(250000.0)),
        44, True, False),
    "tied_biases": (
        dict(hidden_size=36, num_attention_heads=3, num_key_value_heads=3, intermediate_size=64,
             vocab_size=97, num_hidden_layers=3, attention_bias=True, tie_word_embeddings=True,
             rope_parameters=default_rope()),
        33, False, False),
}
FAMILIES = {"llama": (LLAMA, 21), "qwen3": (QWEN3, 41), "qwen2": (QWEN2, 51), "mistral": (MISTRAL, 61),
            "eurobert": (EUROBERT, 71)}
ENCODERS = {"eurobert": "EuroBertForMaskedLM"}
MASK_TOKEN = 3


def float32_text(values):
    """Floats that print shortest and read back to the same float32 bits."""
    return [None if v is None else float(str(numpy.float32(v))) for v in values]


def write_json(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")


def make_config(family="llama", **keys):
    keys = dict(num_hidden_layers=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=2,
                dtype="float32") | keys
    architecture = ENCODERS.get(family, f"{family.capitalize()}ForCausalLM")
    more = {"mask_token_id": MASK_TOKEN, "pad_token_id": None} if family in ENCODERS else {}
    return AutoConfig.for_model(family, architectures=[architecture], **more, **keys)


def is_encoder(model):
    return model.config.model_type in ENCODERS


def make_model(config, seed, attention="eager"):
    """Weights large enough that every part of the model shows in its output, small enough that
    training does not amplify rounding."""
    torch.manual_seed(seed)
    of_kind = AutoModelForMaskedLM if config.model_type in ENCODERS else AutoModelForCausalLM
    model = of_kind.from_config(config, attn_implementation=attention)
    model = model.float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn_like(parameter)
            if "norm" in name:
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith(".bias"):
                parameter.copy_(0.2 * noise)
            else:
                parameter.copy_(0.7 * noise / parameter.shape[-1] ** 0.5)
    return model


def older_spelling(path):
    """config.json as transformers 4 wrote it."""
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    rope["type"] = rope.pop("rope_type")
    config["rope_scaling"] = None if rope["type"] == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.40.0"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_score(model, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    vocab_size = model.config.vocab_size
    sequences = [torch.randint(0, vocab_size, (length,), generator=generator).tolist()
                 for length in (1, 2, 33, 100)]
    logprobs = []
    for tokens in sequences:
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0]
        table = torch.log_softmax(logits.float(), -1)
        logprobs.append([None] + [table[i - 1, tokens[i]].item() for i in range(1, len(tokens))])
    write_json(folder / "tokens.json", sequences)
    write_json(folder / "logprobs.json", {"logprobs": [float32_text(row) for row in logprobs]})


def write_hidden(model, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    texts = [torch.randint(0, model.config.vocab_size, (length,), generator=generator).tolist()
             for length in (1, 2, 17, 33, 70)]
    with torch.no_grad():
        hidden = {str(i): model.base_model(torch.tensor([text])).last_hidden_state[0]
                  for i, text in enumerate(texts)}
    write_json(folder / "texts.json", texts)
    save_file(hidden, folder / "hidden.safetensors")


def mask_row(row, generator):
    """The model must find three of ten tokens; in the place of most stands the mask token."""
    tokens = row["tokens"]
    row["labels"] = [-100] * len(tokens)
    for index, draw in enumerate(torch.rand(len(tokens), generator=generator).tolist()):
        if draw < 0.3:
            row["labels"][index] = tokens[index]
            tokens[index] = MASK_TOKEN if draw < 0.25 else tokens[index]
    return row


def make_rows(vocab_size, length, documents, seed, count=20, masked=False):
    rows = []
    generator = torch.Generator().manual_seed(seed)
    for row in range(count):
        window = torch.randint(0, vocab_size, (length + 1,), generator=generator).tolist()
        starts = [0]
        if documents:  # uneven documents, one of a single token
            middle = length // 2 + row % 5
            starts = [0, middle, middle + 1, length - 9 + row % 5]
        labels, positions = window[1:], []
        for index in range(length):
            positions.append(index - max(s for s in starts if s <= index))
            if index + 1 in starts:
                labels[index] = -100
        rows.append({"tokens": window[:-1], "labels": labels, "positions": positions,
                     "document_starts": starts})
        if masked:
            mask_row(rows[-1], generator)
    return rows


def attention_mask(rows, dtype, causal=True):
    """[rows, 1, T, T], added to the scores: causal where asked, and only within a document."""
    masks = []
    for row in rows:
        length = len(row["tokens"])
        document = torch.zeros(length, dtype=torch.long)
        document[row["document_starts"][1:]] = 1
        document = document.cumsum(0)
        visible = document[:, None] == document[None, :]
        visible = visible.tril() if causal else visible
        mask = torch.zeros(length, length, dtype=dtype)
        masks.append(mask.masked_fill(~visible, torch.finfo(dtype).min)[None])
    return torch.stack(masks)


def batch_loss(model, rows):
    column = {key: torch.tensor([row[key] for row in rows])
              for key in ("tokens", "labels", "positions")}
    if is_encoder(model):
        logits = model(column["tokens"], attention_mask=attention_mask(rows, model.dtype, causal=False),
                       position_ids=column["positions"]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), column["labels"].flatten())
    return model(column["tokens"], attention_mask=attention_mask(rows, model.dtype),
                 position_ids=column["positions"], labels=column["labels"],
                 shift_labels=column["labels"]).loss


def train(model, rows, rows_per_step, gradients_path=None):
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=OPTIMIZER["learning_rate"], eps=OPTIMIZER["epsilon"],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), weight_decay=OPTIMIZER["weight_decay"])
    losses, norms = [], []
    for step in range(NUM_STEPS):
        batch = [rows[(step * rows_per_step + i) % len(rows)] for i in range(rows_per_step)]
        loss = batch_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        if step == 0 and gradients_path:
            save_file({n: p.grad.contiguous() for n, p in model.named_parameters()},
                      gradients_path)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(),
                                                    OPTIMIZER["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


def write_case(family, name, folder, seed):
    keys, length, documents, older = FAMILIES[family][0][name]
    config = make_config(family, **keys)
    model = make_model(config, seed)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if older:
        older_spelling(folder / "config.json")
    (write_hidden if is_encoder(model) else write_score)(model, folder, seed)
    check_documents(model)

    rows = make_rows(config.vocab_size, length, documents, seed, masked=is_encoder(model))
    exact = make_model(config, seed, "sdpa").double()
    losses, norms = train(model, rows, 2, folder / "first_gradients.safetensors")
    exact_losses, exact_norms = train(exact, rows, 2)
    write_json(folder / "training.json",
               {"optimizer": OPTIMIZER, "rows_per_step": 2, "rows": rows,
                "loss": float32_text(losses), "grad_norm": float32_text(norms)})

    def stray(found, expected, count):
        return max(abs(a - b) / abs(b) for a, b in zip(found[:count], expected[:count]))

    print(f"{family} {name}: {sum(p.numel() for p in model.parameters())} parameters, loss "
          f"{losses[0]:.3f} -> {losses[-1]:.3f}, norm {norms[0]:.2f} -> {norms[-1]:.2f}; float32 "
          f"against float64: loss {stray(losses, exact_losses, 20):.1e} in 20 steps, "
          f"{stray(losses, exact_losses, 100):.1e} in 100, "
          f"norm {stray(norms, exact_norms, 20):.1e}, {stray(norms, exact_norms, 100):.1e}")


def check_documents(model):
    """The mask and the positions make a packed row equal to its documents, one by one."""
    [row] = make_rows(model.config.vocab_size, 40, True, 7, count=1)
    with torch.no_grad():
        packed = model(torch.tensor([row["tokens"]]), attention_mask=attention_mask([row], model.dtype, not is_encoder(model)),
                       position_ids=torch.tensor([row["positions"]])).logits[0]
        bounds = row["document_starts"] + [len(row["tokens"])]
        alone = torch.cat([model(torch.tensor([row["tokens"][a:b]])).logits[0]
                           for a, b in zip(bounds, bounds[1:])])
    assert torch.allclose(packed, alone, atol=1e-5), (packed - alone).abs().max()


def write_import(folder, dtype, seed):
    config = make_config(hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=96, vocab_size=200, dtype=dtype,
                         rope_parameters=default_rope(), eos_token_id=[2, 5])
    model = make_model(config, seed).to(getattr(torch, dtype))
    model.save_pretrained(folder, max_shard_size="48KB")
    # Loaded afresh: the conversion above rounded the rotary table too.
    widened = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                   attn_implementation="eager")
    write_score(widened.eval(), folder, seed)


def write_rope(path):
    cases = []
    for head_dim in (2, 6, 8, 22, 64, 80, 96, 128, 256):
        for rope in (default_rope(), default_rope(500000.0), default_rope(123456.7),
                     {"rope_type": "linear", "rope_theta": 10000.0, "factor": 3.0},
                     LLAMA3_ROPE | {"rope_theta": 500000.0, "factor": 32.0,
                                    "original_max_position_embeddings": 8192},
                     LLAMA3_ROPE):
            keys = dict(hidden_size=head_dim * 2, num_attention_heads=2, num_hidden_layers=1,
                        intermediate_size=8, vocab_size=8, max_position_embeddings=131072)
            table = LlamaRotaryEmbedding(LlamaConfig(**keys, rope_parameters=dict(rope))).inv_freq
            cases.append({"config": keys | {"rope_parameters": rope},
                          "inverse_frequencies": float32_text(table.tolist())})
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


def yarn(**keys):
    return {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
            "original_max_position_embeddings": 4096} | keys


def write_rope_scaling(path):
    cases = []
    for head_dim in (8, 22, 64, 128):
        half = head_dim // 2
        short, long = [1 + i / 50 for i in range(half)], [1 + i / 7 for i in range(half)]
        longrope = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": short,
                    "long_factor": long, "original_max_position_embeddings": 4096}
        dynamic = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 3.0}
        for rope, length in (
                (yarn(), None), (yarn(rope_theta=1000000.0), None), (yarn(factor=40.0), None),
                (yarn(attention_factor=0.8), None), (yarn(beta_fast=64.0, beta_slow=2.0), None),
                (yarn(mscale=0.707, mscale_all_dim=1.0), None), (yarn(mscale=0.707), None),
                (yarn(truncate=False), None), (yarn(truncate=None, beta_slow=0.0), None),
                (yarn(factor=None), None), (yarn(original_max_position_embeddings=8), None),
                (yarn(factor=1.0), None),
                (longrope, 4096), (longrope, 4097), (longrope | {"factor": 8.0}, 9000),
                (longrope | {"attention_factor": 1.3}, 1), (dynamic, 100), (dynamic, 16384)):
            keys = dict(hidden_size=head_dim * 2, num_attention_heads=2, num_hidden_layers=1,
                        intermediate_size=8, vocab_size=8, max_position_embeddings=16384)
            config = LlamaConfig(**keys, rope_parameters=dict(rope))
            table, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, None, seq_len=length)
            cases.append({"config": keys | {"rope_parameters": rope}, "text_length": length or 1,
                          "attention_factor": factor,
                          "inverse_frequencies": float32_text(table.tolist())})
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


def write_named(family, name):
    out = Path("tests/goldens") / family
    cases, first_seed = FAMILIES[family]
    if name == "rope_scaling.json":
        return write_rope_scaling(out / name)
    shutil.rmtree(out / name, ignore_errors=True)
    write_case(family, name, out / name, first_seed + list(cases).index(name))


def main():
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    for family in sys.argv[1:] or FAMILIES:
        if "/" in family:
            write_named(*family.split("/"))
            continue
        out = Path("tests/goldens") / family
        shutil.rmtree(out, ignore_errors=True)
        cases, first_seed = FAMILIES[family]
        for seed, name in enumerate(cases, start=first_seed):
            write_case(family, name, out / name, seed)
        if family == "llama":
            write_import(out / "import_bfloat16", "bfloat16", 100)
            write_import(out / "import_float16", "float16", 101)
            write_rope(out / "rope.json")
            write_rope_scaling(out / "rope_scaling.json")


if __name__ == "__main__":
    main()
