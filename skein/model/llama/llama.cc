#include "skein/model/llama/llama.h"

#include "skein/model/decoder_graph.h"
#include "skein/ops/add/add.h"

namespace skein {
namespace {

std::vector<ModelKey> keys() {
  std::vector<ModelKey> keys = norm_and_rope_keys();
  keys.push_back(
      {"attention_bias", ModelKey::Kind::kBool, "biases in the projections of attention"});
  keys.push_back({"mlp_bias", ModelKey::Kind::kBool, "biases in the projections of the MLP"});
  for (ModelKey& key : window_keys(false)) keys.push_back(std::move(key));
  return keys;
}

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  LlamaConstants constants = parse_norm_and_rope(keys, config);
  constants.qkv_bias = constants.output_bias = keys.boolean("attention_bias", false);
  constants.mlp_bias = keys.boolean("mlp_bias", false);
  set_constants(config, constants);
  // transformers' Llama has no windows. What names one comes from another family, whose function is
  // this one as long as the window holds the text.
  if (keys.boolean("use_sliding_window", true)) config.window = parse_window(keys);
}

void write(const DecoderConfig& config, Json& json) {
  const auto& constants = config.constants<LlamaConstants>();
  json["attention_bias"] = constants.qkv_bias;
  json["mlp_bias"] = constants.mlp_bias;
  json["pretraining_tp"] = 1;
  json.update(config.window.keys);
  write_norm_and_rope(config, json);
}

}  // namespace

const FamilyDef llama_family = {
    .model_type = "llama",
    .architecture = "LlamaForCausalLM",
    .default_max_positions = 2048,
    .keys = keys,
    .parse = parse,
    .write = write,
    .parameters = llama_parameters,
    .layers = llama_layers,
    .tables = llama_tables,
    .flops = gated_decoder_flops,
};

LlamaConstants parse_norm_and_rope(const ConfigKeys& keys, const DecoderConfig& config) {
  LlamaConstants constants;
  constants.rms_norm_eps = keys.number("rms_norm_eps", 1e-12, 1, 1e-6);
  constants.rope = parse_rope(keys, config.max_position_embeddings, config.head_dim);
  return constants;
}

void write_norm_and_rope(const DecoderConfig& config, Json& json) {
  const auto& constants = config.constants<LlamaConstants>();
  json["rms_norm_eps"] = constants.rms_norm_eps;
  write_rope(constants.rope, json);
}

void set_constants(DecoderConfig& config, const LlamaConstants& constants) {
  config.own = std::make_shared<const LlamaConstants>(constants);
}

std::vector<ParameterSpec> llama_parameters(const DecoderConfig& config) {
  const auto& constants = config.constants<LlamaConstants>();
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t query = config.query_size(), key_value = config.key_value_size();
  using enum Split;
  using enum Init;
  ParameterList list;
  list.add_embedding(config);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    list.enter_layer(layer);
    list.add_linear("self_attn.q_proj", query, hidden, kRows, kNormal, constants.qkv_bias);
    list.add_linear("self_attn.k_proj", key_value, hidden, kKeyValueRows, kNormal,
                    constants.qkv_bias);
    list.add_linear("self_attn.v_proj", key_value, hidden, kKeyValueRows, kNormal,
                    constants.qkv_bias);
    list.add_linear("self_attn.o_proj", hidden, query, kColumns, kResidual, constants.output_bias);
    list.add_linear("mlp.gate_proj", inner, hidden, kRows, kNormal, constants.mlp_bias);
    list.add_linear("mlp.up_proj", inner, hidden, kRows, kNormal, constants.mlp_bias);
    list.add_linear("mlp.down_proj", hidden, inner, kColumns, kResidual, constants.mlp_bias);
    list.add_norm("input_layernorm", hidden);
    list.add_norm("post_attention_layernorm", hidden);
  }
  list.leave_layers();
  list.add_norm("model.norm", hidden);
  list.add_head(config);
  return list.take();
}

ValueId llama_layers(DecoderGraph& decoder, ValueId x) {
  const DecoderConfig& config = decoder.config();
  const auto& constants = config.constants<LlamaConstants>();
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    decoder.enter_layer(layer);
    const RmsNorm before =
        decoder.norm(x, kNoValue, "input_layernorm.weight", constants.rms_norm_eps, "attn_norm");
    const std::vector<ValueId> qkv =
        decoder.project(before.y, "self_attn.", {"q_proj", "k_proj", "v_proj"}, constants.qkv_bias);
    const ValueId attended = decoder.rotary_attention(qkv[0], qkv[1], qkv[2]);
    const ValueId o = decoder.project_out(attended, "self_attn.", "o_proj", constants.output_bias);
    const RmsNorm between = decoder.norm(before.h, o, "post_attention_layernorm.weight",
                                         constants.rms_norm_eps, "mlp_norm");
    const ValueId y = decoder.gated_mlp(between.y, "mlp.", constants.mlp_bias);
    x = add(decoder.graph(), between.h, y, decoder.label("x"));
  }
  decoder.leave_layers();
  return decoder
      .norm(x, kNoValue, "model.norm.weight", constants.rms_norm_eps, decoder_names::kHeadInput)
      .y;
}

std::vector<DecoderTable> llama_tables(const DecoderConfig& config, int64_t num_positions) {
  return {rope_input(config.constants<LlamaConstants>().rope, config.head_dim, num_positions)};
}

}  // namespace skein
