// Makes the matrix products of the layers, forward and backward, use 8-bit operands
// (skein/ops/linear/fp8_operands.h). The head, attention and everything else stay as they are.
// linear_dw and linear_dx of the same gradients become linear_dx_dw, which rounds those once.
// The largest magnitude of what is rounded is a value (fp8_largest), found once for all readers, by
// the op that writes it where that can (skein/ops/largest.h).
// With `fast_accumulation` forward products have that attr.
// With `keep_weights` products read weights that round_weights has rounded before: values of the
// role kRounded, which weights_to_round makes. Where a size of a rank's part of a weight is not a
// multiple of kFp8Multiple, products round it themselves.
#pragma once

#include "skein/ir/graph.h"
#include "skein/passes/parallel/take_stage.h"

namespace skein {

struct Fp8Options {
  bool fast_accumulation = false;
  bool keep_weights = false;
  // Of a pipeline: a largest magnitude is not sent from one chunk to another. Empty: there is one.
  ChunkOfScope chunk_of = {};
};

void use_fp8(Graph& graph, const Fp8Options& options);

// Of the layers' forward products of 8-bit operands, those that round their weights themselves.
int64_t num_rounding_products(const Graph& training);

// The program that rounds all weights of which `training` reads rounded ones, in its update phase;
// without nodes where there are none.
Graph weights_to_round(const Graph& training);

}  // namespace skein
