// Rows of the kernels that normalize tokens (rms_norm, layer_norm): how one is spread over the
// threads of a block, read and written.
#pragma once

#include <algorithm>

#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein::cuda {

// A row is spread over warps, and each thread of a warp has some packs of n columns. With kPacks >
// 0 a thread has so many, and they are aligned. With 0 it has any number, which may be unaligned
// and are read at each use. How a row is spread, and so the bits, depends on its length alone.
template <int kPacks, int n, typename Body>
__device__ void for_packs(int thread, int num_packs, const Body& body) {
  const int packs = kPacks > 0 ? kPacks : num_packs;
  const int first = (thread / 32 * packs * 32 + thread % 32) * n;
#pragma unroll
  for (int i = 0; i < packs; ++i) body(kPacks > 0 ? i : 0, first + i * (32 * n));
}

// Columns beyond the row's end read as 0.
template <bool is_aligned, int n, typename T>
__device__ Pack<T, n> read(const T* row, int col, int cols) {
  if constexpr (is_aligned) return load_pack_or<n>(T{}, col < cols, row + col);
  Pack<T, n> pack = {};
  for (int i = 0; i < n && col + i < cols; ++i) pack.at[i] = row[col + i];
  return pack;
}
template <bool is_aligned, typename T, int n>
__device__ void write(T* row, int col, int cols, const Pack<T, n>& pack) {
  if constexpr (is_aligned) {
    if (col < cols) store_pack_global(row + col, pack);
  } else {
    for (int i = 0; i < n && col + i < cols; ++i) row[col + i] = pack.at[i];
  }
}

struct Spread {
  unsigned warps;
  int packs;  // of a thread
};
inline Spread spread_over(int64_t all_packs, int packs) {
  while (all_packs > int64_t{packs} * 1024) ++packs;
  return {blocks_for(all_packs, int64_t{packs} * 32), packs};
}

// function(T{}, W{}) with the C++ types of the rows and the weight.
template <typename Function>
void with_types(const View& rows, const View& weight, const Function& function) {
  with_type(rows.dtype,
            [&](auto row) { with_type(weight.dtype, [&](auto w) { function(row, w); }); });
}

}  // namespace skein::cuda
