#include "skein/weights/source_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

using decoder_names::kEmbeddingWeight;
using decoder_names::kHeadWeight;

constexpr std::string_view kModel = "model.";
constexpr std::string_view kBareEmbedding = "embed_tokens.weight";

struct Wrapper {
  std::string_view text;
  std::string_view whose;
};
// Anywhere in a name: each wraps a module of its own.
constexpr std::array<Wrapper, 4> kInside = {{
    {"_orig_mod.", "torch.compile"},
    {"_fsdp_wrapped_module.", "FSDP"},
    {"_checkpoint_wrapped_module.", "activation checkpointing"},
    {"_forward_module.", "Lightning"},
}};
// At the beginning of every name.
constexpr std::array<Wrapper, 3> kBefore = {{
    {"module.", "a data-parallel wrapper"},
    {"base_model.model.", "PEFT"},
    {"model.", "a module that holds the model"},
}};

// What a part of a name tells, in the order in which they are tried.
struct Sign {
  std::string_view part;
  std::string_view what;
};
constexpr std::array<Sign, 9> kOtherWeights = {{
    {".lora_A.", "those of a LoRA adapter that is not merged: merge_and_unload() of PEFT does"},
    {".lora_embedding_A.",
     "those of a LoRA adapter that is not merged: merge_and_unload() of PEFT does"},
    {".qweight", "quantized (GPTQ or AWQ): name the model that they were made of"},
    {".absmax", "quantized (bitsandbytes): name the model that they were made of"},
    {".SCB", "quantized (bitsandbytes): name the model that they were made of"},
    {".weight_packed", "quantized (compressed-tensors): name the model that they were made of"},
    {".weight_scale", "quantized: name the model that they were made of"},
    {".attention.wq.",
     "Meta's own, with other names and another order of rows: `python -m "
     "transformers.models.llama.convert_llama_weights_to_hf` converts them"},
    {"linear_qkv.", "Megatron's: export the model to Hugging Face with Megatron Bridge"},
}};
constexpr std::array<Sign, 24> kFamilies = {{
    {".attn.c_attn.", "gpt2"},
    {"gpt_neox.", "gpt_neox"},
    {".attention.query_key_value.", "gpt_neox"},
    {".attn.attention.q_proj.", "gpt_neo"},
    {".self_attention.query_key_value.", "bloom or falcon"},
    {"decoder.embed_positions.", "opt"},
    {".self_attn.qkv_proj.", "phi3"},
    {".mlp.gate_up_proj.", "phi3"},
    {".attn.Wqkv.", "mpt"},
    {".self_attn.W_pack.", "baichuan"},
    {".attention.wqkv.", "internlm2"},
    {".block_sparse_moe.", "mixtral"},
    {".kv_a_proj_with_mqa.", "deepseek"},
    {".mlp.experts.", "mixture-of-experts"},
    {".mlp.gate.", "mixture-of-experts"},
    {".pre_feedforward_layernorm.", "gemma2 or gemma3"},
    {".post_feedforward_layernorm.", "olmo2"},
    {".mlp.fc1.", "phi"},
    {".mlp.dense_h_to_4h.", "gpt_neox"},
    {".mixer.A_log", "mamba"},
    {".linear_attn.", "qwen3_next"},
    {"vision_tower.", "vision"},
    {"visual.", "vision"},
    {".wte.", "gpt2"},
}};

const Sign* sign_of(std::span<const Sign> signs, const std::vector<std::string>& names) {
  for (const Sign& sign : signs) {
    for (const std::string& name : names) {
      if (("." + name).find(sign.part) != std::string::npos) return &sign;
    }
  }
  return nullptr;
}

bool erase_all(std::string& name, std::string_view part) {
  bool erased = false;
  for (size_t at = 0; (at = name.find(part, at)) != name.npos;) {
    if (at == 0 || name[at - 1] == '.') {
      name.erase(at, part.size());
      erased = true;
    } else {
      at += part.size();
    }
  }
  return erased;
}

// The names, and how they change step by step.
class Renaming {
 public:
  explicit Renaming(const std::vector<std::string>& names) : names_(names), now_(names) {}

  SourceNames find() {
    for (const Wrapper& wrapper : kInside) erase_inside(wrapper);
    for (bool changed = true; changed && !has(kEmbeddingWeight);) {
      changed = false;
      for (const Wrapper& wrapper : kBefore) changed = changed || erase_before(wrapper);
    }
    if (!has(kEmbeddingWeight) && has(kBareEmbedding)) add_model();
    SourceNames found;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != now_[i]) found.renamed[names_[i]] = now_[i];
    }
    if (!found.renamed.empty()) found.note = fmt::format("{}", fmt::join(notes_, "; "));
    return found;
  }

 private:
  bool has(std::string_view name) const {
    return std::find(now_.begin(), now_.end(), name) != now_.end();
  }

  void erase_inside(const Wrapper& wrapper) {
    const auto begins = [&](const std::string& name) { return name.starts_with(wrapper.text); };
    const bool all_begin = std::all_of(now_.begin(), now_.end(), begins);
    size_t erased = 0;
    for (std::string& name : now_) erased += erase_all(name, wrapper.text) ? 1 : 0;
    if (erased == 0) return;
    notes_.push_back(fmt::format("{} {} ({}) and are read without it",
                                 all_begin ? "all names of tensors begin with"
                                           : fmt::format("{} names of tensors hold", erased),
                                 wrapper.text, wrapper.whose));
  }

  // `model.` is a wrapper only where the model's own name follows it.
  bool erase_before(const Wrapper& wrapper) {
    const auto begins = [&](const std::string& name) { return name.starts_with(wrapper.text); };
    if (now_.empty() || !std::all_of(now_.begin(), now_.end(), begins)) return false;
    const std::string embedding = std::string(wrapper.text) + kEmbeddingWeight;
    if (wrapper.text == kModel && !has(embedding)) return false;
    for (std::string& name : now_) name.erase(0, wrapper.text.size());
    notes_.push_back(fmt::format("all names of tensors begin with {} ({}) and are read without it",
                                 wrapper.text, wrapper.whose));
    return true;
  }

  void add_model() {
    for (std::string& name : now_) {
      if (name != kHeadWeight) name.insert(0, kModel);
    }
    notes_.emplace_back(
        "its tensors have no `model.` before their names, as the decoder alone is saved, and are "
        "read with it");
  }

  const std::vector<std::string>& names_;
  std::vector<std::string> now_;
  std::vector<std::string> notes_;
};

// Text for an error, such as ": attention_bias is false, mlp_bias is false".
std::string biases_text(const DecoderConfig& model) {
  const Json json = to_hugging_face_json(model, DType::kF32);
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (key.find("bias") == key.npos) continue;
    text += fmt::format("{}{} is {}", text.empty() ? ": " : ", ", key, json_text(value));
  }
  return text;
}

std::string and_more(size_t count) {
  return count <= 1 ? "" : fmt::format(" and {} more", count - 1);
}

std::string shown(const std::string& name) { return visible_text(name, 200); }

void refuse_what_is_known(const std::string& folder, const DecoderConfig& model,
                          const std::vector<std::string>& missing,
                          const std::vector<std::string>& unknown) {
  if (const Sign* sign = sign_of(kOtherWeights, unknown)) {
    fail(ErrorCode::kUnsupported, "{}: its weights are {} (found a tensor '{}'{})", folder,
         sign->what, shown(unknown.front()), and_more(unknown.size()));
  }
  if (missing.empty()) return;
  if (const Sign* sign = sign_of(kFamilies, unknown)) {
    fail(ErrorCode::kUnsupported,
         "{}: its tensors are those of a {} model, which Skein does not have: found '{}'{}, and no "
         "'{}', which a {} needs",
         folder, sign->what, shown(unknown.front()), and_more(unknown.size()), missing.front(),
         model.family->architecture);
  }
}

}  // namespace

SourceNames source_names(const std::vector<std::string>& names) { return Renaming(names).find(); }

bool is_buffer(std::string_view name, std::string_view safetensors_dtype) {
  for (const std::string_view end :
       {".inv_freq", ".original_inv_freq", ".cos_cached", ".sin_cached"}) {
    if (name.ends_with(end) && name.find("rotary_emb.") != name.npos) return true;
  }
  if (name.ends_with(".masked_bias")) return true;
  const bool is_mask = safetensors_dtype == "BOOL" || safetensors_dtype == "U8";
  return is_mask && (name.ends_with("attn.bias") || name.ends_with(".causal_mask"));
}

void refuse_tensors(const std::string& folder, const DecoderConfig& model,
                    const std::vector<std::string>& missing,
                    const std::vector<std::string>& unknown, bool has_config) {
  refuse_what_is_known(folder, model, missing, unknown);
  if (missing.size() == 1 && missing.front() == kHeadWeight && unknown.empty()) {
    fail(ErrorCode::kInvalid,
         "{}: {} is missing, and tie_word_embeddings is false: `--set "
         "model.tie_word_embeddings=true`, if the head is the embedding's{}",
         folder, kHeadWeight,
         has_config ? fmt::format(" (or \"tie_word_embeddings\": true in {}/config.json, which all "
                                  "commands read)",
                                  folder)
                    : "");
  }
  if (!unknown.empty()) {
    fail(ErrorCode::kInvalid,
         "{} has a tensor '{}'{} that the model has no place for{}; without it the weights compute "
         "something else. Expected a {} as its config.json describes it{}",
         folder, shown(unknown.front()), and_more(unknown.size()),
         missing.empty() ? ""
                         : fmt::format(", and no tensor '{}'{}, which it needs", missing.front(),
                                       and_more(missing.size())),
         model.family->architecture, unknown.front().ends_with(".bias") ? biases_text(model) : "");
  }
  fail(ErrorCode::kInvalid, "{} has no tensor '{}'{}, which the model needs", folder,
       missing.front(), and_more(missing.size()));
}

}  // namespace skein
