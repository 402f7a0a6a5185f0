// Qwen2 and Qwen2.5: a Llama whose query, key and value projections always have biases, and no
// others.
//
// Source   Yang et al., "Qwen2 Technical Report", arXiv:2407.10671; transformers modeling_qwen2.py
#include "skein/model/decoder_graph.h"
#include "skein/model/llama/llama.h"

namespace skein {

extern const FamilyDef qwen2_family;

namespace {

std::vector<ModelKey> keys() {
  std::vector<ModelKey> keys = norm_and_rope_keys();
  for (ModelKey& key : window_keys(true)) keys.push_back(std::move(key));
  return keys;
}

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  LlamaConstants constants = parse_norm_and_rope(keys, config);
  constants.qkv_bias = true;
  set_constants(config, constants);
  config.window = parse_layer_windows(keys, config.num_hidden_layers);
}

void write(const DecoderConfig& config, Json& json) {
  json.update(config.window.keys);
  write_norm_and_rope(config, json);
}

}  // namespace

const FamilyDef qwen2_family = {
    .model_type = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .default_max_positions = 32'768,
    .default_key_value_heads = 32,
    .unread_key = "attention_bias",
    .auto_tokenizer = false,  // transformers 5.23: always Qwen2Tokenizer, which reads bytes
    .keys = keys,
    .parse = parse,
    .write = write,
    .parameters = llama_parameters,
    .layers = llama_layers,
    .tables = llama_tables,
    .flops = gated_decoder_flops,
};

}  // namespace skein
