// Sums over tokens whose bits do not depend on threads: each block of kBlockTokens tokens is summed
// by itself, and a binary tree adds the blocks. Used for the gradients of norm weights.
//
// Cost   one partial sum per block: block_sums_bytes() of scratch, written and read once
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace skein {

inline constexpr int64_t kBlockTokens = 64;  // part of an op's definition, not of the machine

inline int64_t num_token_blocks(int64_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

// Calls body(begin, end) for the tokens of each block.
template <typename Body>
void for_each_token_block(int64_t tokens, const Body& body) {
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < num_token_blocks(tokens); ++block) {
    body(block * kBlockTokens, std::min(tokens, (block + 1) * kBlockTokens));
  }
}

inline int64_t block_sums_bytes(int64_t tokens, int64_t cols) {
  return num_token_blocks(tokens) * cols * static_cast<int64_t>(sizeof(float));
}

// sums[i][0, cols) += the sums of all blocks, of each of `sums`. body(begin, end, partial) adds the
// terms of a block's tokens to its `partial`, which begins as zeros and has `cols` floats for each
// of `sums`, one after the other. `scratch` has block_sums_bytes of all these columns.
template <typename Body>
void add_block_sums(int64_t tokens, int64_t cols, void* scratch, std::span<float* const> sums,
                    const Body& body) {
  auto* partial = static_cast<float*>(scratch);
  const int64_t blocks = num_token_blocks(tokens);
  const int64_t all_cols = cols * static_cast<int64_t>(sums.size());
  for_each_token_block(tokens, [&](int64_t begin, int64_t end) {
    float* own = partial + begin / kBlockTokens * all_cols;
    std::fill(own, own + all_cols, 0.0f);
    body(begin, end, own);
  });
  if (blocks == 0) return;
  constexpr int64_t kColumns = 64;
  for (size_t part = 0; part < sums.size(); ++part) {
    float* const of_part = partial + static_cast<int64_t>(part) * cols;
    float* const sum = sums[part];
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < cols; first += kColumns) {
      const int64_t last = std::min(cols, first + kColumns);
      for (int64_t gap = 1; gap < blocks; gap *= 2) {
        for (int64_t block = 0; block + gap < blocks; block += 2 * gap) {
          float* to = of_part + block * all_cols;
          const float* from = of_part + (block + gap) * all_cols;
          for (int64_t col = first; col < last; ++col) to[col] += from[col];
        }
      }
      for (int64_t col = first; col < last; ++col) sum[col] += of_part[col];
    }
  }
}

// The same of one sum.
template <typename Body>
void add_block_sums(int64_t tokens, int64_t cols, void* scratch, float* sum, const Body& body) {
  add_block_sums(tokens, cols, scratch, std::span<float* const>(&sum, 1), body);
}

}  // namespace skein
