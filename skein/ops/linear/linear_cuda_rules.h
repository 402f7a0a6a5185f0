// Sizes and choices of linear's CUDA kernels that planning needs, too (ops/cuda_rules.h).
#pragma once

#include "skein/ir/kernel.h"

namespace skein::linear_cuda {

// Of linear_dx. Where there are several products and dx is bf16, they are added in f32 in scratch
// memory, and rounded once.
bool adds_in_scratch(const KernelCall& call);

// Of linear_dx_dw. Where only one of the products is in 8 bits, each has copies of its own, one
// behind the other: of tokens that are no multiple only the gradients of weights are not.
bool rounds_apart(const KernelCall& call);

// Of linear_db: its sums of splits.
inline constexpr int64_t kBlocks = 4 * 132;   // about four on every multiprocessor of an H100
inline constexpr int64_t kTileCols = 32 * 8;  // a warp of packs of 8 bf16

}  // namespace skein::linear_cuda
