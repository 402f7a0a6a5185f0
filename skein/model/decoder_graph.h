// The forward pass of a decoder in plain tensor operations, from which a family composes its
// layers. The parts of every decoder (inputs, embedding, head, the loss without full logits) are
// built here.
//
//   x = embedding(tokens);  x = layers(x);  loss = sum over labels of -log softmax(x head^T)[label]
//
// Shapes   T = sequences * sequence_length tokens, flattened; activations [T, features]
// Placed   nothing: placement.h defines how a decoder is split over a mesh
// Scopes   each layer ends in one value, which full recomputation stores and a pipeline stage sends
// Errors   Error{kInternal} for a parameter that the family did not list
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/model/config_keys.h"
#include "skein/model/decoder.h"
#include "skein/model/rotary.h"
#include "skein/ops/rms_norm/rms_norm.h"

namespace skein {

class DecoderGraph {
 public:
  DecoderGraph(Graph& graph, const DecoderConfig& config, const DecoderOptions& options);

  Graph& graph() { return graph_; }
  const DecoderConfig& config() const { return config_; }
  const DecoderOptions& options() const { return options_; }

  // Adds parameters and inputs, and returns the embedding of the tokens.
  ValueId embed();
  // Adds the head and returns the output of the purpose. `x`: the output of the last norm.
  ValueId finish(ValueId x);

  // From here on parameter names begin with "model.layers.<layer>." and labels with "l<layer>.".
  void enter_layer(int64_t layer);
  void leave_layers();

  // A parameter of the layer that was entered, or of the model outside layers.
  ValueId parameter(const std::string& name) const;
  ValueId table(const std::string& name) const { return tables_.at(name); }
  ValueId positions() const { return positions_; }
  ValueId attention_start() const { return attention_start_; }
  // The name of a value, such as l3.swiglu.
  std::string label(const std::string& name) const { return label_ + name; }

  // The norm of x, or of x + residual, which is `h` in the result.
  RmsNorm norm(ValueId x, ValueId residual, const std::string& weight, double epsilon,
               const std::string& name);

  // x W^T (+ bias) for each of `<names>.weight`, which lie adjacent in memory, as one product.
  std::vector<ValueId> project(ValueId x, const std::string& prefix,
                               const std::vector<std::string>& names, bool with_bias);
  // A product whose weight is split by columns: the bias is added after the sum over ranks.
  ValueId project_out(ValueId x, const std::string& prefix, const std::string& name,
                      bool with_bias);

  // Rotates queries and keys by "rope_table", then causal attention within each document.
  ValueId rotary_attention(ValueId q, ValueId k, ValueId v);
  // down(silu(gate(x)) * up(x)).
  ValueId gated_mlp(ValueId x, const std::string& prefix, bool with_bias);

 private:
  ValueId input(const std::string& name, DType dtype, Shape shape);
  ValueId token_input(const std::string& name);
  void add_parameter(const ParameterSpec& spec);
  ValueId packed_product(ValueId x, const std::string& weight, ValueId bias,
                         const std::string& name, bool f32_output);
  ValueId cached_attention(ValueId q, ValueId k, ValueId v);
  ValueId serve(ValueId x);
  ValueId head_weight() const;
  ValueId last_logits(ValueId x);
  ValueId loss(ValueId x);
  std::vector<int64_t> head_block_sizes() const;

  Graph& graph_;
  const DecoderConfig& config_;
  const DecoderOptions& options_;
  int64_t num_tokens_;
  ValueId positions_ = kNoValue;
  ValueId attention_start_ = kNoValue;
  ValueId sequence_ = kNoValue;
  ValueId pages_ = kNoValue;
  std::map<std::string, ValueId> tables_;
  std::map<ValueId, int64_t> packed_rows_;  // of each packed weight
  std::string prefix_;                      // of parameter names
  std::string label_;                       // of value names
};

// The rotary table, an input that rotary_attention reads.
DecoderTable rope_input(const RopeConfig& rope, int64_t head_dim, int64_t num_positions);

// FamilyDef::flops for layers of rotary_attention and gated_mlp.
double gated_decoder_flops(const DecoderConfig& config, int64_t sequence_length);

// ModelKeys of rms_norm_eps and of rotary.h.
std::vector<ModelKey> norm_and_rope_keys();

// ModelKeys of parse_window; with_layers: of parse_layer_windows.
std::vector<ModelKey> window_keys(bool with_layers);

// Lists parameters under the names that DecoderGraph looks up.
class ParameterList {
 public:
  void enter_layer(int layer);
  void leave_layers();

  void add(const std::string& name, Shape shape, Split split, Init init);
  // weight [out, in], and with_bias: bias [out].
  void add_linear(const std::string& name, int64_t out, int64_t in, Split split, Init init,
                  bool with_bias);
  void add_norm(const std::string& name, int64_t size);
  // Every decoder's first and last parameter.
  void add_embedding(const DecoderConfig& config);
  void add_head(const DecoderConfig& config);

  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParameterSpec> specs_;
  std::string prefix_;
  int layer_ = -1;
};

}  // namespace skein
