// The Llama family as plain mathematics: one definition, from which training on any layout, scoring
// and generation are derived.
//
//   x = embedding(tokens)
//   each layer:  x = x + o_proj(attention(rope(qkv_proj(norm(x)))))
//                x = x + down_proj(swiglu(gate_up_proj(norm(x))))
//   loss = sum over labels of -log softmax(norm(x) head^T)[label]
//
// Shapes   T = sequences * sequence_length tokens, flattened; activations [T, features]
// Inputs   tokens, labels, positions, attention_start i32[T]; rope_table f32[S, head_dim];
//          loss_sum f64[exact_sum::kBins], to which the micro-batch's loss is added
// Placed   nothing is: how a Llama lies on a mesh is said in placement.h
// Names    parameters have their Hugging Face names
// Source   Touvron et al., "Llama 2", arXiv 2307.09288; transformers modeling_llama.py
#pragma once

#include <vector>

#include "skein/ir/graph.h"
#include "skein/model/llama/config.h"

namespace skein {

enum class LlamaPurpose {
  kTrain,     // output `loss_sum'2`
  kScore,     // output `token_loss` f32[T]: -log p of each label
  kGenerate,  // output `logits` f32[1, V] of row `last_row` i32[1]
};

struct LlamaOptions {
  LlamaPurpose purpose = LlamaPurpose::kTrain;
  DType compute_dtype = DType::kF32;
  int64_t sequences = 1;
  int64_t sequence_length = 0;
  // Ranks that the tokens will be split over: chunks of logits are multiples of it.
  int64_t token_ranks = 1;
  // Rows of logits of a rank that exist at a time; 0: as many as fit 64 MiB, at most 2048.
  int64_t loss_chunk_tokens = 0;
};

// Appends the forward phase; returns the loss (kTrain), the token losses or the logits.
ValueId build_llama(Graph& graph, const LlamaConfig& config, const LlamaOptions& options);

// Row p: the cosines of the head_dim / 2 angles at position p, then their sines; computed in fp32
// as transformers does.
std::vector<float> rope_table(const LlamaConfig& config, int64_t num_positions);

}  // namespace skein
