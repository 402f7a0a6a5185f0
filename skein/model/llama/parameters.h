// The parameters of a Llama under their Hugging Face names, in transformers' order.
//
// Shapes   a linear weight is [out, in], the embedding and the head [V, D]; with tied embeddings
//          there is no lm_head.weight. The index in the list names the parameter's random stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/model/llama/config.h"
#include "skein/tensor/shape.h"

namespace skein {

// What decides how a parameter is initialised, decayed and placed.
enum class ParameterKind : uint8_t {
  kEmbedding,
  kNorm,          // starts at 1
  kLinear,        // q, k, v, gate, up
  kAttentionOut,  // o_proj; scaled initialisation divides by sqrt(2 layers)
  kMlpOut,        // down_proj; likewise
  kBias,          // starts at 0
  kHead,
};

std::string_view parameter_kind_name(ParameterKind kind);

struct ParameterSpec {
  std::string name;
  Shape shape;
  ParameterKind kind;
  int layer = -1;  // -1: outside the layers
};

std::vector<ParameterSpec> parameter_specs(const LlamaConfig& config);

int64_t num_parameters(const LlamaConfig& config);

// Floating-point operations of one token's forward and backward pass over a sequence of
// `sequence_length`: 6 per parameter of a matrix (embedding look-up excluded, head included) and
// 12 * layers * query_size * sequence_length / 2 for causal attention. Recomputation is not
// counted.
double training_flops_per_token(const LlamaConfig& config, int64_t sequence_length);

}  // namespace skein
