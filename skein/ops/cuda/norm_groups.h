// Sizes of the CUDA kernels that normalize tokens which planning needs, too (ops/cuda_rules.h).
#pragma once

#include "skein/base/text/units.h"
#include "skein/tensor/view.h"

namespace skein::norm_groups {

// Tokens of one partial sum of a weight's gradient: enough that writing it is little beside reading
// them, but few where tokens are, since a GPU wants some 256 blocks to be busy. The sums are added
// as a binary tree, which has those of 64 tokens among its nodes.
inline int group_tokens(const View& dx) {
  int group = dx.cols() * size_of(dx.dtype) <= 1024 ? 8 : 16;
  while (group > 4 && dx.rows() < int64_t{256} * group) group /= 2;
  return group;
}
inline unsigned num_groups(const View& dx) {
  return static_cast<unsigned>(ceil_div(dx.rows(), group_tokens(dx)));
}

}  // namespace skein::norm_groups
