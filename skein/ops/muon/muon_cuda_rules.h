// What `orthogonalize` keeps on a GPU behind the factors: the norm of the direction, the partial
// sums of its square, and the workspace of products.
#pragma once

#include <cstdint>

#include "skein/ops/matmul/matmul_cuda_rules.h"
#include "skein/ops/muon/orthogonalize.h"

namespace skein::muon_cuda {

inline constexpr int64_t kNormSegment = 8192;  // elements of a partial sum

struct Scratch : OrthogonalizeScratch {
  int64_t partial_sums, num_segments, norm, workspace, bytes;

  Scratch(const OrthogonalizeSizes& sizes, DType dtype)
      : OrthogonalizeScratch(sizes, dtype),
        partial_sums(rest),
        num_segments(ceil_div(sizes.elements(), kNormSegment)),
        norm(partial_sums + round_up(num_segments * size_of(DType::kF64), kAlignment)),
        workspace(norm + kAlignment),
        bytes(workspace + cuda_matmul_scratch_bytes(0)) {}
};

}  // namespace skein::muon_cuda
