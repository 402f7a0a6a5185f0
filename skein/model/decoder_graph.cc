#include "skein/model/decoder_graph.h"

#include <algorithm>
#include <cmath>

#include "skein/base/error.h"
#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/add_bias/add_bias.h"
#include "skein/ops/attention/attention.h"
#include "skein/ops/embedding/embedding.h"
#include "skein/ops/linear/linear.h"
#include "skein/ops/packed_linear/packed_linear.h"
#include "skein/ops/paged_attention/paged_attention.h"
#include "skein/ops/rope/rope.h"
#include "skein/ops/softmax_cross_entropy/softmax_cross_entropy.h"
#include "skein/ops/split/split.h"
#include "skein/ops/sum/sum.h"
#include "skein/ops/swiglu/swiglu.h"
#include "skein/ops/take_rows/take_rows.h"
#include "skein/ops/token_scores/token_scores.h"

namespace skein {
namespace {

using decoder_names::kEmbeddingWeight;
using decoder_names::kHeadWeight;

constexpr const char* kRopeTable = "rope_table";

std::string layer_prefix(int64_t layer) { return fmt::format("model.layers.{}.", layer); }

}  // namespace

DecoderGraph::DecoderGraph(Graph& graph, const DecoderConfig& config, const DecoderOptions& options)
    : graph_(graph),
      config_(config),
      options_(options),
      num_tokens_(options.sequences * options.sequence_length) {}

ValueId DecoderGraph::embed() {
  for (const ParameterSpec& spec : parameter_specs(config_)) add_parameter(spec);
  const ValueId tokens = token_input(decoder_names::kTokens);
  positions_ = token_input(decoder_names::kPositions);
  const bool serves = options_.purpose == DecoderPurpose::kServe;
  if (serves) {
    sequence_ = token_input(decoder_names::kSequence);
    pages_ = input(decoder_names::kPages, DType::kI32,
                   {options_.cache.num_sequences, options_.cache.pages_a_sequence});
  } else {
    attention_start_ = token_input(decoder_names::kAttentionStart);
  }
  const int64_t positions = serves ? options_.cache.num_positions() : options_.sequence_length;
  for (const DecoderTable& table : decoder_tables(config_, positions)) {
    tables_[table.name] = input(table.name, DType::kF32, table.shape);
  }
  graph_.set_scope(Scope::before_layers());
  return embedding(graph_, tokens, parameter(kEmbeddingWeight), "x");
}

// Of a packed weight nothing but the packed words; of a tied embedding both.
void DecoderGraph::add_parameter(const ParameterSpec& spec) {
  const auto add = [&](const std::string& name, DType dtype, Shape shape) {
    return graph_.add_input(Role::kParameter, name,
                            TensorType::replicated(dtype, std::move(shape), graph_.mesh()));
  };
  Shape shape = spec.shape;
  if (spec.is_vocabulary) {
    shape.set_dim(0, padded_vocabulary(config_, options_.vocabulary_ranks));
  }
  const bool is_packed = options_.packed_weights && is_product_weight(config_, spec);
  if (is_packed) {
    const int64_t words = packed_weight_words(options_.compute_dtype, shape.dim(0), shape.dim(1));
    packed_rows_[add(packed_name(spec.name), DType::kI32, {words})] = shape.dim(0);
  }
  if (!is_packed || spec.is_embedding) add(spec.name, options_.compute_dtype, shape);
}

ValueId DecoderGraph::finish(ValueId x) {
  if (options_.purpose == DecoderPurpose::kServe) return serve(x);
  const bool generates = options_.purpose == DecoderPurpose::kGenerate;
  const bool embeds = options_.purpose == DecoderPurpose::kEmbed;
  const ValueId result = generates ? last_logits(x) : embeds ? x : loss(x);
  graph_.set_scope({});
  graph_.mark_output(result);
  return result;
}

void DecoderGraph::enter_layer(int64_t layer) {
  prefix_ = layer_prefix(layer);
  label_ = fmt::format("l{}.", layer);
  graph_.set_scope(Scope::of_layer(static_cast<int>(layer)));
}

void DecoderGraph::leave_layers() {
  prefix_.clear();
  label_.clear();
  graph_.set_scope(Scope::behind_layers());
}

ValueId DecoderGraph::parameter(const std::string& name) const {
  const ValueId id = graph_.find(prefix_ + name);
  if (id == kNoValue) fail(ErrorCode::kInternal, "the model has no parameter '{}'", prefix_ + name);
  return id;
}

RmsNorm DecoderGraph::norm(ValueId x, ValueId residual, const std::string& weight, double epsilon,
                           const std::string& name) {
  return rms_norm(graph_, x, residual, parameter(weight), epsilon, label(name));
}

std::vector<ValueId> DecoderGraph::project(ValueId x, const std::string& prefix,
                                           const std::vector<std::string>& names, bool with_bias) {
  std::vector<ValueId> weights, biases;
  std::vector<std::string> outputs;
  if (options_.packed_weights) {
    for (const std::string& name : names) {
      const std::string full = prefix + name;
      const ValueId bias = with_bias ? parameter(full + ".bias") : kNoValue;
      biases.push_back(packed_product(x, prefix_ + full + ".weight", bias, label(name), false));
    }
    return biases;
  }
  for (const std::string& name : names) {
    weights.push_back(parameter(prefix + name + ".weight"));
    if (with_bias) biases.push_back(parameter(prefix + name + ".bias"));
    outputs.push_back(label(name));
  }
  return linear(graph_, x, weights, biases, outputs);
}

ValueId DecoderGraph::project_out(ValueId x, const std::string& prefix, const std::string& name,
                                  bool with_bias) {
  const ValueId y = project(x, prefix, {name}, false)[0];
  return with_bias ? add_bias(graph_, y, parameter(prefix + name + ".bias"), label(name)) : y;
}

ValueId DecoderGraph::rotary_attention(ValueId q, ValueId k, ValueId v) {
  const auto [rotated_q, rotated_k] =
      rope(graph_, q, k, positions_, table(kRopeTable), config_.head_dim, label("q"), label("k"));
  if (options_.purpose == DecoderPurpose::kServe) return cached_attention(rotated_q, rotated_k, v);
  AttentionAttrs attrs;
  attrs.heads = config_.num_attention_heads;
  attrs.kv_heads = config_.num_key_value_heads;
  attrs.head_dim = config_.head_dim;
  attrs.sequence_length = options_.sequence_length;
  attrs.causal = !config_.family->is_encoder;
  attrs.documents = options_.documents;
  attrs.repeatable = options_.repeatable;
  attrs.scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
  return attention(graph_, rotated_q, rotated_k, v, attention_start_, attrs, label("attention")).o;
}

ValueId DecoderGraph::cached_attention(ValueId q, ValueId k, ValueId v) {
  const DecoderCache& cache = options_.cache;
  PagedAttentionAttrs attrs;
  attrs.heads = config_.num_attention_heads;
  attrs.kv_heads = config_.num_key_value_heads;
  attrs.head_dim = config_.head_dim;
  attrs.page_size = cache.page_size;
  attrs.scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
  const Shape pages = {cache.num_pages, config_.key_value_size() * cache.page_size};
  const auto pool = [&](const char* name) {
    return graph_.add_input(Role::kCache, label(name),
                            TensorType::replicated(options_.compute_dtype, pages, graph_.mesh()));
  };
  const ValueId keys = pool("cached_keys"), values = pool("cached_values");
  return paged_attention(graph_, q, k, v, keys, values, sequence_, positions_, pages_, attrs,
                         label("attention"))
      .o;
}

ValueId DecoderGraph::gated_mlp(ValueId x, const std::string& prefix, bool with_bias) {
  const std::vector<ValueId> gate_up = project(x, prefix, {"gate_proj", "up_proj"}, with_bias);
  const ValueId y = swiglu(graph_, gate_up[0], gate_up[1], label("swiglu"));
  return project_out(y, prefix, "down_proj", with_bias);
}

ValueId DecoderGraph::input(const std::string& name, DType dtype, Shape shape) {
  return graph_.add_input(Role::kInput, name,
                          TensorType::replicated(dtype, std::move(shape), graph_.mesh()));
}

ValueId DecoderGraph::token_input(const std::string& name) {
  return input(name, DType::kI32, {num_tokens_});
}

ValueId DecoderGraph::head_weight() const {
  return parameter(config_.tie_word_embeddings ? kEmbeddingWeight : kHeadWeight);
}

ValueId DecoderGraph::packed_product(ValueId x, const std::string& weight, ValueId bias,
                                     const std::string& name, bool f32_output) {
  const ValueId packed = graph_.find(packed_name(weight));
  const auto rows = packed_rows_.find(packed);
  if (rows == packed_rows_.end()) {
    fail(ErrorCode::kInternal, "the model has no packed weight '{}'", weight);
  }
  return packed_linear(graph_, x, packed, bias, rows->second, name, f32_output);
}

ValueId DecoderGraph::serve(ValueId x) {
  const int64_t rows = options_.cache.head_rows;
  const ValueId wanted = input(decoder_names::kHeadRows, DType::kI32, {rows});
  const ValueId labels = input(decoder_names::kHeadLabels, DType::kI32, {rows});
  const ValueId taken = take_rows(graph_, x, wanted, "head.x");
  const std::string weight = config_.tie_word_embeddings ? kEmbeddingWeight : kHeadWeight;
  const ValueId logits =
      options_.packed_weights
          ? packed_product(taken, weight, kNoValue, decoder_names::kLogits, true)
          : linear(graph_, taken, {head_weight()}, {}, {decoder_names::kLogits}, true)[0];
  const TokenScores scores = token_scores(graph_, logits, labels, decoder_names::kLogProb,
                                          decoder_names::kBest, decoder_names::kBestLogProb);
  graph_.set_scope({});
  for (const ValueId output : {logits, scores.logprob, scores.best, scores.best_logprob}) {
    graph_.mark_output(output);
  }
  return logits;
}

ValueId DecoderGraph::last_logits(ValueId x) {
  const ValueId row = input(decoder_names::kLastRow, DType::kI32, {1});
  const ValueId last = take_rows(graph_, x, row, "last");
  return linear(graph_, last, {head_weight()}, {}, {decoder_names::kLogits},
                /*f32_output=*/true)[0];
}

// Computes one token block at a time, so that the full logits never exist: hoist_transient moves
// the gradient of each block next to its logits.
ValueId DecoderGraph::loss(ValueId x) {
  const ValueId labels = token_input(decoder_names::kLabels);
  const std::vector<int64_t> sizes = head_block_sizes();
  const std::vector<ValueId> x_blocks = split(graph_, x, sizes, "head.x");
  const std::vector<ValueId> label_blocks = split(graph_, labels, sizes, "head.labels");
  const bool scores = options_.purpose == DecoderPurpose::kScore;
  const bool is_padded =
      padded_vocabulary(config_, options_.vocabulary_ranks) != config_.vocab_size;
  std::vector<ValueId> losses;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const ValueId logits = linear(graph_, x_blocks[i], {head_weight()}, {},
                                  {fmt::format("head.logits.{}", i)}, /*f32_output=*/scores)[0];
    const auto entropy =
        softmax_cross_entropy(graph_, logits, label_blocks[i], options_.compute_dtype,
                              fmt::format("head.{}", i), is_padded ? config_.vocab_size : 0);
    graph_.value(logits).transient = true;
    graph_.value(entropy.dlogits).transient = true;
    losses.push_back(entropy.loss);
  }
  const ValueId token_loss = concat(graph_, losses, decoder_names::kTokenLoss);
  if (scores) return token_loss;
  const ValueId sum = input(decoder_names::kLossSum, DType::kF64, {exact_sum::kBins});
  return add_to_sum(graph_, sum, token_loss);
}

std::vector<int64_t> DecoderGraph::head_block_sizes() const {
  int64_t block = options_.head_block_tokens;
  if (block == 0) {
    const int64_t row_bytes = config_.vocab_size * size_of(DType::kF32);
    block = std::clamp<int64_t>((int64_t{64} << 20) / row_bytes / 64 * 64, 64, 2048);
  }
  block *= options_.token_ranks;
  std::vector<int64_t> sizes;
  for (int64_t done = 0; done < num_tokens_; done += sizes.back()) {
    sizes.push_back(std::min(block, num_tokens_ - done));
  }
  return sizes;
}

DecoderTable rope_input(const RopeConfig& rope, int64_t head_dim, int64_t num_positions) {
  return {kRopeTable, Shape{num_positions, head_dim},
          [=](int64_t length) { return rope_table(rope, head_dim, num_positions, length); },
          rope_changes_beyond(rope), rope_choice(rope, num_positions)};
}

double gated_decoder_flops(const DecoderConfig& config, int64_t sequence_length) {
  const double hidden = static_cast<double>(config.hidden_size);
  const double query = static_cast<double>(config.query_size());
  const double key_value = static_cast<double>(config.key_value_size());
  const double inner = static_cast<double>(config.intermediate_size);
  const double layer = hidden * (2 * query + 2 * key_value + 3 * inner);
  const double layers = static_cast<double>(config.num_hidden_layers);
  const double matrices = layers * layer + hidden * static_cast<double>(config.vocab_size);
  const double keys = static_cast<double>(sequence_length) * (config.family->is_encoder ? 1 : 0.5);
  return 6 * matrices + 12 * layers * query * keys;
}

std::vector<ModelKey> norm_and_rope_keys() {
  using enum ModelKey::Kind;
  return {{"rms_norm_eps", kNumber, "epsilon of the norms"},
          {"rope_theta", kNumber, "base of the rotary embedding"},
          {"rope_scaling", kTable,
           "scaling of the rotary embedding; rope_type `linear`, `dynamic`, `yarn`, `longrope` or "
           "`llama3`, with transformers' keys"},
          {"rope_parameters", kTable, "rope_theta and rope_scaling as transformers 5 writes them"}};
}

std::vector<ModelKey> window_keys(bool with_layers) {
  using enum ModelKey::Kind;
  std::vector<ModelKey> keys = {
      {"sliding_window", kInteger,
       "how many tokens a token attends to, itself included; 0: all before it; rows may not be "
       "longer"}};
  if (!with_layers) return keys;
  keys.push_back({"use_sliding_window", kBool,
                  "of a Qwen: whether its layers have the window of sliding_window"});
  keys.push_back({"max_window_layers", kInteger,
                  "of a Qwen: the first layer with the window, counted from 0"});
  return keys;
}

void ParameterList::enter_layer(int layer) {
  layer_ = layer;
  prefix_ = layer_prefix(layer);
}

void ParameterList::leave_layers() {
  layer_ = -1;
  prefix_.clear();
}

void ParameterList::add(const std::string& name, Shape shape, Split split, Init init) {
  ParameterSpec spec;
  spec.name = prefix_ + name;
  spec.shape = std::move(shape);
  spec.layer = layer_;
  spec.split = split;
  spec.init = init;
  specs_.push_back(std::move(spec));
}

void ParameterList::add_linear(const std::string& name, int64_t out, int64_t in, Split split,
                               Init init, bool with_bias) {
  add(name + ".weight", Shape{out, in}, split, init);
  if (!with_bias) return;
  // The bias of a product that is summed over ranks is added once, after the sum (project_out), so
  // it is not split.
  add(name + ".bias", Shape{out}, split == Split::kColumns ? Split::kWhole : split, Init::kZeros);
  specs_.back().is_bias = true;
}

void ParameterList::add_norm(const std::string& name, int64_t size) {
  add(name + ".weight", Shape{size}, Split::kWhole, Init::kOnes);
  specs_.back().is_norm = true;
}

void ParameterList::add_embedding(const DecoderConfig& config) {
  add(kEmbeddingWeight, Shape{config.vocab_size, config.hidden_size}, Split::kRows, Init::kNormal);
  specs_.back().is_vocabulary = true;
  specs_.back().shared = config.tie_word_embeddings;
  specs_.back().is_embedding = true;
}

void ParameterList::add_head(const DecoderConfig& config) {
  if (config.tie_word_embeddings) return;
  add(kHeadWeight, Shape{config.vocab_size, config.hidden_size}, Split::kRows, Init::kNormal);
  specs_.back().is_vocabulary = true;
}

}  // namespace skein
