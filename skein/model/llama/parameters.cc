#include "skein/model/llama/parameters.h"

#include <fmt/format.h>

namespace skein {
namespace {

class SpecList {
 public:
  void add(std::string name, Shape shape, ParameterKind kind) {
    specs_.push_back({prefix_ + std::move(name), std::move(shape), kind, layer_});
  }
  void add_linear(const std::string& name, int64_t out, int64_t in, ParameterKind kind, bool bias) {
    add(name + ".weight", Shape{out, in}, kind);
    if (bias) add(name + ".bias", Shape{out}, ParameterKind::kBias);
  }
  void set_layer(int layer) {
    layer_ = layer;
    prefix_ = layer < 0 ? "" : fmt::format("model.layers.{}.", layer);
  }
  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParameterSpec> specs_;
  std::string prefix_;
  int layer_ = -1;
};

void add_layer(const LlamaConfig& config, SpecList& list) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t query = config.query_size(), key_value = config.key_value_size();
  const bool attention_bias = config.attention_bias, mlp_bias = config.mlp_bias;
  using enum ParameterKind;
  list.add_linear("self_attn.q_proj", query, hidden, kLinear, attention_bias);
  list.add_linear("self_attn.k_proj", key_value, hidden, kLinear, attention_bias);
  list.add_linear("self_attn.v_proj", key_value, hidden, kLinear, attention_bias);
  list.add_linear("self_attn.o_proj", hidden, query, kAttentionOut, attention_bias);
  list.add_linear("mlp.gate_proj", inner, hidden, kLinear, mlp_bias);
  list.add_linear("mlp.up_proj", inner, hidden, kLinear, mlp_bias);
  list.add_linear("mlp.down_proj", hidden, inner, kMlpOut, mlp_bias);
  list.add("input_layernorm.weight", Shape{hidden}, kNorm);
  list.add("post_attention_layernorm.weight", Shape{hidden}, kNorm);
}

}  // namespace

std::string_view parameter_kind_name(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kEmbedding:
      return "embedding";
    case ParameterKind::kNorm:
      return "norm";
    case ParameterKind::kLinear:
      return "linear";
    case ParameterKind::kAttentionOut:
      return "attention_out";
    case ParameterKind::kMlpOut:
      return "mlp_out";
    case ParameterKind::kBias:
      return "bias";
    case ParameterKind::kHead:
      return "head";
  }
  return "";
}

std::vector<ParameterSpec> parameter_specs(const LlamaConfig& config) {
  const Shape vocabulary_matrix{config.vocab_size, config.hidden_size};
  SpecList list;
  list.add("model.embed_tokens.weight", vocabulary_matrix, ParameterKind::kEmbedding);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    list.set_layer(layer);
    add_layer(config, list);
  }
  list.set_layer(-1);
  list.add("model.norm.weight", Shape{config.hidden_size}, ParameterKind::kNorm);
  if (!config.tie_word_embeddings) {
    list.add("lm_head.weight", vocabulary_matrix, ParameterKind::kHead);
  }
  return list.take();
}

int64_t num_parameters(const LlamaConfig& config) {
  int64_t total = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) total += spec.shape.num_elements();
  return total;
}

double training_flops_per_token(const LlamaConfig& config, int64_t sequence_length) {
  const double hidden = static_cast<double>(config.hidden_size);
  const double query = static_cast<double>(config.query_size());
  const double key_value = static_cast<double>(config.key_value_size());
  const double inner = static_cast<double>(config.intermediate_size);
  const double layer = hidden * (2 * query + 2 * key_value + 3 * inner);
  const double layers = static_cast<double>(config.num_hidden_layers);
  const double matrices = layers * layer + hidden * static_cast<double>(config.vocab_size);
  return 6 * matrices + 6 * layers * query * static_cast<double>(sequence_length);
}

}  // namespace skein
