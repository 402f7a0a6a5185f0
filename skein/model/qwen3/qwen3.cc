// Qwen3, dense: a pre-norm decoder whose queries and keys are normalised head by head before they
// are rotated. The width of a head is its own, not hidden_size / num_attention_heads.
//
//   each layer:  q, k, v = qkv_proj(norm(x))
//                x = x + o_proj(attention(rope(head_norm(q), head_norm(k)), v))
//                x = x + down_proj(silu(gate_proj(norm(x))) * up_proj(norm(x)))
//
// Source   Yang et al., "Qwen3 Technical Report", arXiv:2505.09388; transformers modeling_qwen3.py
#include "skein/model/decoder_graph.h"
#include "skein/model/rotary.h"
#include "skein/ops/add/add.h"
#include "skein/ops/head_norm/head_norm.h"

namespace skein {

extern const FamilyDef qwen3_family;

namespace {

struct Qwen3Constants {
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool attention_bias = false;  // on q, k, v and o
};

std::vector<ModelKey> keys() {
  std::vector<ModelKey> keys = norm_and_rope_keys();
  keys.push_back(
      {"attention_bias", ModelKey::Kind::kBool, "biases in the projections of attention"});
  for (ModelKey& key : window_keys(true)) keys.push_back(std::move(key));
  return keys;
}

const Qwen3Constants& constants_of(const DecoderConfig& config) {
  return config.constants<Qwen3Constants>();
}

void parse(const ConfigKeys& keys, DecoderConfig& config) {
  Qwen3Constants constants;
  constants.rms_norm_eps = keys.number("rms_norm_eps", 1e-12, 1, 1e-6);
  constants.attention_bias = keys.boolean("attention_bias", false);
  constants.rope = parse_rope(keys, config.max_position_embeddings, config.head_dim);
  config.own = std::make_shared<const Qwen3Constants>(constants);
  config.window = parse_layer_windows(keys, config.num_hidden_layers);
}

void write(const DecoderConfig& config, Json& json) {
  const Qwen3Constants& constants = constants_of(config);
  json["attention_bias"] = constants.attention_bias;
  json["rms_norm_eps"] = constants.rms_norm_eps;
  json.update(config.window.keys);
  write_rope(constants.rope, json);
}

std::vector<ParameterSpec> parameters(const DecoderConfig& config) {
  const bool bias = constants_of(config).attention_bias;
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t query = config.query_size(), key_value = config.key_value_size();
  using enum Split;
  using enum Init;
  ParameterList list;
  list.add_embedding(config);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    list.enter_layer(layer);
    list.add_linear("self_attn.q_proj", query, hidden, kRows, kNormal, bias);
    list.add_linear("self_attn.k_proj", key_value, hidden, kKeyValueRows, kNormal, bias);
    list.add_linear("self_attn.v_proj", key_value, hidden, kKeyValueRows, kNormal, bias);
    list.add_linear("self_attn.o_proj", hidden, query, kColumns, kResidual, bias);
    list.add_norm("self_attn.q_norm", config.head_dim);
    list.add_norm("self_attn.k_norm", config.head_dim);
    list.add_linear("mlp.gate_proj", inner, hidden, kRows, kNormal, false);
    list.add_linear("mlp.up_proj", inner, hidden, kRows, kNormal, false);
    list.add_linear("mlp.down_proj", hidden, inner, kColumns, kResidual, false);
    list.add_norm("input_layernorm", hidden);
    list.add_norm("post_attention_layernorm", hidden);
  }
  list.leave_layers();
  list.add_norm("model.norm", hidden);
  list.add_head(config);
  return list.take();
}

ValueId attention_block(DecoderGraph& decoder, ValueId x) {
  const DecoderConfig& config = decoder.config();
  const Qwen3Constants& constants = constants_of(config);
  const auto normed = [&](ValueId heads, const std::string& name) {
    return head_norm(decoder.graph(), heads, decoder.parameter("self_attn." + name + ".weight"),
                     config.head_dim, constants.rms_norm_eps, decoder.label(name));
  };
  const std::vector<ValueId> qkv =
      decoder.project(x, "self_attn.", {"q_proj", "k_proj", "v_proj"}, constants.attention_bias);
  const ValueId q = normed(qkv[0], "q_norm"), k = normed(qkv[1], "k_norm");
  const ValueId attended = decoder.rotary_attention(q, k, qkv[2]);
  return decoder.project_out(attended, "self_attn.", "o_proj", constants.attention_bias);
}

ValueId layers(DecoderGraph& decoder, ValueId x) {
  const DecoderConfig& config = decoder.config();
  const double epsilon = constants_of(config).rms_norm_eps;
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    decoder.enter_layer(layer);
    const RmsNorm before =
        decoder.norm(x, kNoValue, "input_layernorm.weight", epsilon, "attn_norm");
    const ValueId o = attention_block(decoder, before.y);
    const RmsNorm between =
        decoder.norm(before.h, o, "post_attention_layernorm.weight", epsilon, "mlp_norm");
    const ValueId y = decoder.gated_mlp(between.y, "mlp.", false);
    x = add(decoder.graph(), between.h, y, decoder.label("x"));
  }
  decoder.leave_layers();
  return decoder.norm(x, kNoValue, "model.norm.weight", epsilon, decoder_names::kHeadInput).y;
}

std::vector<DecoderTable> tables(const DecoderConfig& config, int64_t num_positions) {
  return {rope_input(constants_of(config).rope, config.head_dim, num_positions)};
}

}  // namespace

const FamilyDef qwen3_family = {
    .model_type = "qwen3",
    .architecture = "Qwen3ForCausalLM",
    .default_max_positions = 32'768,
    .default_key_value_heads = 32,
    .default_head_dim = 128,
    .keys = keys,
    .parse = parse,
    .write = write,
    .parameters = parameters,
    .layers = layers,
    .tables = tables,
    .flops = gated_decoder_flops,
};

}  // namespace skein
