// Qwen2 and Qwen2.5: a Llama whose queries, keys and values always have biases, and nothing else.
//
// Source   Yang et al., "Qwen2 Technical Report", arXiv:2407.10671; transformers modeling_qwen2.py
#include "skein/model/decoder_graph.h"
#include "skein/model/llama/llama.h"

namespace skein {

extern const FamilyDef qwen2_family;

namespace {

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  refuse_windows(keys);
  LlamaConstants constants;
  constants.rms_norm_eps = keys.number("rms_norm_eps", 1e-12, 1, 1e-6);
  constants.qkv_bias = true;
  constants.rope = parse_rope(keys, config.max_position_embeddings);
  set_constants(config, constants);
}

void write(const DecoderConfig& config, Json& json) {
  const auto& constants = config.constants<LlamaConstants>();
  json["rms_norm_eps"] = constants.rms_norm_eps;
  json["use_sliding_window"] = false;
  write_rope(constants.rope, json);
}

}  // namespace

const FamilyDef qwen2_family = {
    .model_type = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .default_max_positions = 32'768,
    .default_key_value_heads = 32,
    .auto_tokenizer = false,  // transformers 5.23: always Qwen2Tokenizer, which reads bytes
    .keys = norm_and_rope_keys,
    .parse = parse,
    .write = write,
    .parameters = llama_parameters,
    .layers = llama_layers,
    .tables = llama_tables,
    .flops = gated_decoder_flops,
};

}  // namespace skein
