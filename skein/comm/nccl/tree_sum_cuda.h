// The canonical sum of n terms (comm/tree_sum.h) in device memory, on a stream: the same bits.
//
// Memory  each term is read once, the result written once. It may lie on this rank's own term
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "skein/comm/tree_sum.h"
#include "skein/tensor/dtype.h"

namespace skein {

// The terms of a share: this rank's own, and those of the other ranks in their order, which lie at
// equal distances.
struct SumTerms {
  const void* own = nullptr;
  const void* others = nullptr;
  int64_t distance = 0;  // bytes
  int rank = 0;
  int size = 1;
  TreePairs pairs;
};

cudaError_t enqueue_tree_sum(DType dtype, const SumTerms& terms, void* result, int64_t elements,
                             cudaStream_t stream);

}  // namespace skein
