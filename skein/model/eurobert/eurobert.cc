// EuroBERT: a Llama whose tokens attend to those on both sides, trained on masked tokens.
//
// Source   Boizard et al., "EuroBERT", arXiv:2503.05500; transformers modular_eurobert.py
#include "skein/model/decoder_graph.h"
#include "skein/model/llama/llama.h"

namespace skein {

extern const FamilyDef eurobert_family;

namespace {

std::vector<ModelKey> keys() {
  std::vector<ModelKey> keys = norm_and_rope_keys();
  keys.push_back(
      {"attention_bias", ModelKey::Kind::kBool, "biases in the projections of attention"});
  keys.push_back(
      {"mask_token_id", ModelKey::Kind::kInteger,
       "of an encoder: the token that stands for one to be found; written to the export"});
  return keys;
}

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  LlamaConstants constants = parse_norm_and_rope(keys, config);
  constants.qkv_bias = constants.output_bias = keys.boolean("attention_bias", false);
  set_constants(config, constants);
  const int64_t mask = keys.integer("mask_token_id", -1, config.vocab_size - 1, -1);
  if (mask >= 0) config.mask_token_id = mask;
}

void write(const DecoderConfig& config, Json& json) {
  json["attention_bias"] = config.constants<LlamaConstants>().qkv_bias;
  json["mlp_bias"] = false;
  json["mask_token_id"] = config.mask_token_id ? Json(*config.mask_token_id) : Json();
  json["pretraining_tp"] = 1;
  write_norm_and_rope(config, json);
}

}  // namespace

const FamilyDef eurobert_family = {
    .model_type = "eurobert",
    .architecture = "EuroBertForMaskedLM",
    .is_encoder = true,
    .default_max_positions = 8192,
    .keys = keys,
    .parse = parse,
    .write = write,
    .parameters = llama_parameters,
    .layers = llama_layers,
    .tables = llama_tables,
    .flops = gated_decoder_flops,
};

}  // namespace skein
