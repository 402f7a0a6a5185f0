// Mistral 7B and similar models: a Llama without biases, with a sliding window (model/window.h).
//
// Source   Jiang et al., "Mistral 7B", arXiv:2310.06825; transformers configuration_mistral.py
#include "skein/model/decoder_graph.h"
#include "skein/model/llama/llama.h"

namespace skein {

extern const FamilyDef mistral_family;

namespace {

constexpr int64_t kDefaultWindow = 4096;  // of transformers' MistralConfig

std::vector<ModelKey> keys() {
  std::vector<ModelKey> keys = norm_and_rope_keys();
  for (ModelKey& key : window_keys(false)) keys.push_back(std::move(key));
  return keys;
}

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  set_constants(config, parse_norm_and_rope(keys, config));
  config.window = parse_window(keys, kDefaultWindow);
}

void write(const DecoderConfig& config, Json& json) {
  json["sliding_window"] = nullptr;
  json.update(config.window.keys);
  write_norm_and_rope(config, json);
}

}  // namespace

const FamilyDef mistral_family = {
    .model_type = "mistral",
    .architecture = "MistralForCausalLM",
    .default_max_positions = 131'072,
    .default_key_value_heads = 8,
    .null_inline = "sliding_window",
    .keys = keys,
    .parse = parse,
    .write = write,
    .parameters = llama_parameters,
    .layers = llama_layers,
    .tables = llama_tables,
    .flops = gated_decoder_flops,
};

}  // namespace skein
