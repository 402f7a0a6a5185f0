"""What generation.py times beside skein: transformers and other programs, each as a class.

A class loads a Job's model; `generate(tokens)` returns ids or a text; `set` says how its threads were set.
"""

import dataclasses
import glob
import json
import os

PROMPT = "The file begins with"
AGREEMENT_TOKENS = 32


@dataclasses.dataclass
class Job:
    """What a side computes. `prompt` and `unused` are from transformers, which comes first."""

    model: str  # a Hugging Face folder without ends of text
    scratch: str  # an empty folder of the side's own
    dtype: str
    threads: int
    tokens: int
    prompt: list = dataclasses.field(default_factory=list)  # ids
    unused: int = 0  # an id that transformers does not generate: a peer that needs an end of text gets this one

    def config(self):
        with open(os.path.join(self.model, "config.json"), encoding="utf-8") as file:
            return json.load(file)


class Transformers:
    def __init__(self, job):
        import torch
        import transformers
        torch.set_num_threads(job.threads)
        self.torch = torch
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(job.model)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            job.model, dtype=getattr(torch, job.dtype)).eval()
        self.inputs = self.tokenizer(PROMPT, return_tensors="pt")["input_ids"]
        self.set = f"torch.set_num_threads({torch.get_num_threads()}); torch {torch.__version__}"

    def generate(self, tokens):
        with self.torch.inference_mode():
            ids = self.model.generate(input_ids=self.inputs, min_new_tokens=tokens, max_new_tokens=tokens,
                                      do_sample=False, use_cache=True)
        return ids[0, self.inputs.shape[1]:].tolist()

    def reference(self, tokens):
        """The ids of the prompt, those that follow, and the texts of the first ones: of 0, of 1, of 2, …"""
        prompt, ids = self.inputs[0].tolist(), self.generate(tokens)
        texts = [self.tokenizer.decode(prompt + ids[:count], skip_special_tokens=True,
                                       clean_up_tokenization_spaces=False)
                 for count in range(min(tokens, AGREEMENT_TOKENS) + 1)]
        return prompt, ids, [text.removeprefix(texts[0]) for text in texts]


class MistralRs:
    def __init__(self, job):
        import mistralrs
        self.library = mistralrs
        dtype = {"float32": mistralrs.ModelDType.F32, "bfloat16": mistralrs.ModelDType.BF16}[job.dtype]
        self.runner = mistralrs.Runner(
            which=mistralrs.Which.Plain(model_id=job.model, arch=mistralrs.Architecture.Llama, dtype=dtype),
            max_seqs=1, prefix_cache_n=0, token_source="none")
        self.prompt = job.prompt
        self.set = f"CANDLE_NUM_THREADS={job.threads}, RAYON_NUM_THREADS={job.threads}"

    def generate(self, tokens):
        request = self.library.CompletionRequest(prompt=PROMPT, model="default", max_tokens=tokens, temperature=0.0,
                                                 ignore_eos=True)
        reply = self.runner.send_completion_request(request)
        used = reply.usage
        if (used.prompt_tokens, used.completion_tokens) != (len(self.prompt), tokens):
            raise RuntimeError(f"it read {used.prompt_tokens} tokens and wrote {used.completion_tokens}: "
                               f"expected {len(self.prompt)} and {tokens}")
        return reply.choices[0].text


class CTranslate2:
    def __init__(self, job):
        import ctranslate2
        import ctranslate2.converters
        supported = ctranslate2.get_supported_compute_types("cpu")
        if job.dtype not in supported:
            raise RuntimeError(f"its CPU backend computes in {', '.join(sorted(supported))} here, not in {job.dtype}")
        folder = os.path.join(job.scratch, "model")
        ctranslate2.converters.TransformersConverter(job.model).convert(folder, quantization=job.dtype)
        self.generator = ctranslate2.Generator(folder, device="cpu", compute_type=job.dtype, inter_threads=1,
                                               intra_threads=job.threads)
        with open(os.path.join(folder, "vocabulary.json"), encoding="utf-8") as file:
            words = json.load(file)
        self.prompt, self.end = [words[token] for token in job.prompt], [job.unused]
        self.set = f"inter_threads=1, intra_threads={job.threads}"

    def generate(self, tokens):
        result = self.generator.generate_batch([self.prompt], max_length=tokens, min_length=tokens, beam_size=1,
                                               sampling_topk=1, end_token=self.end, include_prompt_in_result=False)
        return result[0].sequences_ids[0]


class LlamaCpp:
    def __init__(self, job):
        import xllamacpp
        path = os.path.join(job.scratch, "model.gguf")
        write_gguf(job, path)
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_parallel = 1
        params.n_ctx = len(job.prompt) + job.tokens + 16
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = job.threads
        self.server = xllamacpp.Server(params)
        self.prompt = job.prompt
        features = xllamacpp.get_system_info().partition("CPU : ")[2].split("|")
        built = " ".join(word.split("=")[0].strip() for word in features if word.strip().endswith("= 1"))
        self.set = f"n_threads={job.threads}, also of the batch; its cache is f16; built for {built}"

    def generate(self, tokens):
        reply = self.server.handle_completions({
            "prompt": self.prompt, "max_tokens": tokens, "temperature": 0.0, "top_k": 1, "ignore_eos": True,
            "cache_prompt": False, "logprobs": 1})
        if "choices" not in reply:
            raise RuntimeError(json.dumps(reply))
        return [entry["id"] for entry in reply["choices"][0]["logprobs"]["content"]]


def write_gguf(job, path):
    """A Llama for llama.cpp: the tensors and sizes of the folder, and a made-up vocabulary."""
    import gguf
    import torch
    from safetensors import safe_open

    config = job.config()
    rope = config.get("rope_parameters") or {}
    scaling = config.get("rope_scaling") or rope
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if config["model_type"] != "llama" or kind != "default":
        raise RuntimeError(f"write_gguf knows Llamas without a scaled RoPE: not {config['model_type']}, {kind}")
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    vocab = config["vocab_size"]

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(float(config.get("rope_theta") or rope.get("rope_theta") or 10000))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(vocab)
    types = {"float32": gguf.GGMLQuantizationType.F32, "bfloat16": gguf.GGMLQuantizationType.BF16}
    files = {"float32": gguf.LlamaFileType.ALL_F32, "bfloat16": gguf.LlamaFileType.MOSTLY_BF16}
    writer.add_file_type(files[job.dtype])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"t{token}" for token in range(vocab)])
    writer.add_token_types([gguf.TokenType.NORMAL] * vocab)
    writer.add_token_merges(["t 0"])
    writer.add_bos_token_id(job.prompt[0])
    writer.add_eos_token_id(job.unused)
    writer.add_add_bos_token(False)

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for shard in sorted(glob.glob(os.path.join(job.model, "*.safetensors"))):
        with safe_open(shard, framework="pt") as tensors:
            for name in tensors.keys():
                if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                    continue
                tensor = tensors.get_tensor(name).to(torch.float32)
                for module, count in (("q_proj", heads), ("k_proj", kv_heads)):
                    if f".{module}." in name:  # llama.cpp rotates neighbours, Hugging Face the halves of a head
                        halves = tensor.reshape(count, 2, head_dim // 2, -1)
                        tensor = halves.swapaxes(1, 2).reshape(tensor.shape)
                dtype = types[job.dtype if tensor.dim() > 1 else "float32"]
                values = gguf.quants.quantize(tensor.contiguous().numpy(), dtype)
                new_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
                if new_name is None:
                    raise RuntimeError(f"llama.cpp has no name for the tensor {name}")
                writer.add_tensor(new_name, values, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


SIDES = {"transformers": Transformers, "mistralrs": MistralRs, "ctranslate2": CTranslate2, "xllamacpp": LlamaCpp}
