// The canonical sum of n terms, in host memory.
//
//   result[i] = tree(terms[0][i], ..., terms[n-1][i]),  tree: (a0 + a1) + (a2 + a3), and so on by
//   doubling gaps; with n = 5: ((a0 + a1) + (a2 + a3)) + a4. One term is copied.
//
// Pairs     where some ranks' terms are branches of 2^j leaves of a larger tree and others' of half
//           as many (comm/branches.h), the halves of a branch are added first: with 4 leaves over 3
//           ranks, a0 + (a1 + a2)
// Accumulation  in the dtype (i32 wraps); bf16 in fp32, rounded once
// Memory    `result` may be one of the terms, or must overlap none
// Cost      memory-bound: each term is read once, the result written once; 17 blocks of 4 KiB of
//           stack per thread (f64: 8 KiB)
// Threads   OpenMP, over elements; the bits do not depend on their number
#pragma once

#include <cstdint>
#include <span>

#include "skein/tensor/dtype.h"

namespace skein {

// The terms [first, first + 2 count) are halves: each two of them make one term of the tree.
struct TreePairs {
  int64_t first = 0;
  int64_t count = 0;
};

void tree_sum(DType dtype, std::span<const void* const> terms, void* result, int64_t elements,
              TreePairs pairs = {});

}  // namespace skein
