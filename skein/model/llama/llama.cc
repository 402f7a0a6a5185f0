#include "skein/model/llama/llama.h"

#include <algorithm>
#include <cmath>

#include "skein/base/exact_sum.h"
#include "skein/model/llama/parameters.h"
#include "skein/model/llama/rope.h"
#include "skein/ops/add/add.h"
#include "skein/ops/attention/attention.h"
#include "skein/ops/embedding/embedding.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/rms_norm/rms_norm.h"
#include "skein/ops/rope/rope.h"
#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"
#include "skein/ops/split/split.h"
#include "skein/ops/sum/sum.h"
#include "skein/ops/swiglu/swiglu.h"
#include "skein/ops/take_row/take_row.h"

namespace skein {
namespace {

class LlamaBuilder {
 public:
  LlamaBuilder(Graph& graph, const LlamaConfig& config, const LlamaOptions& options)
      : graph_(graph),
        config_(config),
        options_(options),
        num_tokens_(options.sequences * options.sequence_length) {}

  ValueId build() {
    for (const ParameterSpec& spec : parameter_specs(config_)) {
      graph_.add_input(Role::kParameter, spec.name,
                       TensorType::replicated(options_.compute_dtype, spec.shape, graph_.mesh()));
    }
    const ValueId tokens = token_input("tokens");
    positions_ = token_input("positions");
    attention_start_ = token_input("attention_start");
    rope_table_ = input("rope_table", DType::kF32, {options_.sequence_length, config_.head_dim});

    graph_.set_scope("embed");
    ValueId x = embedding(graph_, tokens, parameter("model.embed_tokens.weight"), "x");
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) x = decoder_layer(layer, x);
    graph_.set_scope("head");
    x = rms_norm(graph_, x, kNoValue, parameter("model.norm.weight"), config_.rms_norm_eps, "final")
            .y;
    const ValueId result = options_.purpose == LlamaPurpose::kGenerate ? last_logits(x) : loss(x);
    graph_.set_scope("");
    graph_.mark_output(result);
    return result;
  }

 private:
  ValueId input(const std::string& name, DType dtype, Shape shape) {
    return graph_.add_input(Role::kInput, name,
                            TensorType::replicated(dtype, std::move(shape), graph_.mesh()));
  }
  ValueId token_input(const std::string& name) { return input(name, DType::kI32, {num_tokens_}); }

  ValueId parameter(const std::string& name) const {
    const ValueId id = graph_.find(name);
    if (id == kNoValue) fail(ErrorCode::kInternal, "the model has no parameter '{}'", name);
    return id;
  }

  // The projections `<prefix><name>.weight` of one input; adjacent in memory, one product.
  std::vector<ValueId> project(ValueId x, const std::string& prefix,
                               const std::vector<std::string>& names, bool with_bias) {
    std::vector<ValueId> weights, biases;
    std::vector<std::string> outputs;
    for (const std::string& name : names) {
      weights.push_back(parameter(prefix + name + ".weight"));
      if (with_bias) biases.push_back(parameter(prefix + name + ".bias"));
      outputs.push_back(label_ + name);
    }
    return linear(graph_, x, weights, biases, outputs);
  }

  ValueId decoder_layer(int64_t layer, ValueId x) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    label_ = fmt::format("l{}.", layer);
    graph_.set_scope(fmt::format("layers.{}", layer));
    const auto before = rms_norm(graph_, x, kNoValue, parameter(prefix + "input_layernorm.weight"),
                                 config_.rms_norm_eps, label_ + "attn_norm");
    const ValueId attended = attention_block(prefix + "self_attn.", before.y);
    const auto between =
        rms_norm(graph_, before.h, attended, parameter(prefix + "post_attention_layernorm.weight"),
                 config_.rms_norm_eps, label_ + "mlp_norm");
    // The layer ends in one value: what full recomputation keeps and a pipeline stage sends.
    return add(graph_, between.h, mlp_block(prefix + "mlp.", between.y), label_ + "x");
  }

  ValueId attention_block(const std::string& prefix, ValueId x) {
    const std::vector<ValueId> qkv =
        project(x, prefix, {"q_proj", "k_proj", "v_proj"}, config_.attention_bias);
    const auto [q, k] = rope(graph_, qkv[0], qkv[1], positions_, rope_table_, config_.head_dim,
                             label_ + "q", label_ + "k");
    AttentionAttrs attrs;
    attrs.heads = config_.num_attention_heads;
    attrs.kv_heads = config_.num_key_value_heads;
    attrs.head_dim = config_.head_dim;
    attrs.sequence_length = options_.sequence_length;
    attrs.causal = true;
    attrs.scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
    const ValueId o =
        attention(graph_, q, k, qkv[2], attention_start_, attrs, label_ + "attention").o;
    return project(o, prefix, {"o_proj"}, config_.attention_bias)[0];
  }

  ValueId mlp_block(const std::string& prefix, ValueId x) {
    const std::vector<ValueId> gate_up =
        project(x, prefix, {"gate_proj", "up_proj"}, config_.mlp_bias);
    const ValueId y = swiglu(graph_, gate_up[0], gate_up[1], label_ + "swiglu");
    return project(y, prefix, {"down_proj"}, config_.mlp_bias)[0];
  }

  ValueId head_weight() const {
    return parameter(config_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
  }

  ValueId last_logits(ValueId x) {
    const ValueId row = input("last_row", DType::kI32, {1});
    const ValueId last = take_row(graph_, x, row, "last");
    return linear(graph_, last, {head_weight()}, {}, {"logits"}, /*f32_output=*/true)[0];
  }

  // A chunk of tokens at a time, so that the full logits never exist: hoist_transient moves each
  // chunk's gradient behind it.
  ValueId loss(ValueId x) {
    const ValueId labels = token_input("labels");
    const std::vector<int64_t> sizes = chunk_sizes();
    const std::vector<ValueId> x_chunks = split(graph_, x, sizes, "head.x");
    const std::vector<ValueId> label_chunks = split(graph_, labels, sizes, "head.labels");
    std::vector<ValueId> losses;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ValueId logits =
          linear(graph_, x_chunks[i], {head_weight()}, {}, {fmt::format("head.logits.{}", i)},
                 /*f32_output=*/options_.purpose == LlamaPurpose::kScore)[0];
      const auto entropy = softmax_cross_entropy(graph_, logits, label_chunks[i],
                                                 options_.compute_dtype, fmt::format("head.{}", i));
      graph_.value(logits).transient = true;
      graph_.value(entropy.dlogits).transient = true;
      losses.push_back(entropy.loss);
    }
    const ValueId token_loss = concat(graph_, losses, "token_loss");
    if (options_.purpose == LlamaPurpose::kScore) return token_loss;
    return add_to_sum(graph_, input("loss_sum", DType::kF64, {exact_sum::kBins}), token_loss);
  }

  std::vector<int64_t> chunk_sizes() const {
    int64_t chunk = options_.loss_chunk_tokens;
    if (chunk == 0) {
      const int64_t row_bytes = config_.vocab_size * size_of(DType::kF32);
      chunk = std::clamp<int64_t>((int64_t{64} << 20) / row_bytes / 64 * 64, 64, 2048);
    }
    chunk *= options_.token_ranks;
    std::vector<int64_t> sizes;
    for (int64_t done = 0; done < num_tokens_; done += sizes.back()) {
      sizes.push_back(std::min(chunk, num_tokens_ - done));
    }
    return sizes;
  }

  Graph& graph_;
  const LlamaConfig& config_;
  const LlamaOptions& options_;
  int64_t num_tokens_;
  ValueId positions_ = kNoValue;
  ValueId attention_start_ = kNoValue;
  ValueId rope_table_ = kNoValue;
  std::string label_;  // prefix of value names in the current layer
};

}  // namespace

ValueId build_llama(Graph& graph, const LlamaConfig& config, const LlamaOptions& options) {
  return LlamaBuilder(graph, config, options).build();
}

std::vector<float> rope_table(const LlamaConfig& config, int64_t num_positions) {
  const std::vector<float> frequencies = rope_inverse_frequencies(config);
  const size_t half = frequencies.size();
  std::vector<float> table(static_cast<size_t>(num_positions) * 2 * half);
  for (int64_t position = 0; position < num_positions; ++position) {
    float* row = table.data() + static_cast<size_t>(position) * 2 * half;
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
  return table;
}

}  // namespace skein
