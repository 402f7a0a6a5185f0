// Internal to the attention kernels on tensor cores: tiles of 16 x 16, the blocks of shared memory
// that they come from, and how both are loaded, multiplied and stored.
//
// Which elements of a tile a lane holds is not documented: it is found out by loading a tile of
// indices.
#pragma once

#include <mma.h>

#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/cuda/async_copies_cuda.h"

namespace skein::attention_cuda::tensor_core {

using namespace cuda;  // NOLINT(google-build-using-namespace)
namespace wmma = nvcuda::wmma;

constexpr int kTile = 16;
constexpr int kWarps = kBlock / kTile;
constexpr int kThreads = 32 * kWarps;
constexpr int kKeyThreads = 2 * kThreads;  // of dk and dv
constexpr int kStep = 2 * kTile;           // queries that they take at once

using Left = wmma::fragment<wmma::matrix_a, kTile, kTile, kTile, __nv_bfloat16, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, kTile, kTile, kTile, __nv_bfloat16, wmma::row_major>;
using RightTransposed =
    wmma::fragment<wmma::matrix_b, kTile, kTile, kTile, __nv_bfloat16, wmma::col_major>;
using Sum = wmma::fragment<wmma::accumulator, kTile, kTile, kTile, float>;
static_assert(Sum::num_elements == 8);

// bf16 in shared memory; the bytes beyond the columns spare bank conflicts.
template <int rows, int cols>
struct alignas(32) Matrix {
  static constexpr int kStride = cols + 8;
  uint16_t bits[rows][kStride];

  __device__ const __nv_bfloat16* at(int row, int col) const {
    return reinterpret_cast<const __nv_bfloat16*>(&bits[row][col]);
  }
};
// A warp's rows of 64 columns in fp32.
struct alignas(32) Floats {
  static constexpr int kStride = kBlock + 4;
  float at[kTile][kStride];
};

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % warpSize; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / warpSize; }
__device__ inline int first_row_of_warp() { return warp() % kWarps * kTile; }
// Rows of Floats are read and written by two lanes each, a half by each.
__device__ inline int half_row() { return lane() / 2; }

// The row and column within a tile of each element of a Sum that this lane holds.
struct Places {
  int index[Sum::num_elements];
  __device__ int row(int element) const { return index[element] / kTile; }
  __device__ int col(int element) const { return index[element] % kTile; }
};
// Every lane of a warp calls, with memory of the warp.
__device__ inline Places find_places(Floats& memory) {
  float* const indices = &memory.at[0][0];
  for (int i = lane(); i < kTile * kTile; i += warpSize) indices[i] = static_cast<float>(i);
  __syncwarp();
  Sum sum;
  wmma::load_matrix_sync(sum, indices, kTile, wmma::mem_row_major);
  __syncwarp();
  Places places;
  for (int i = 0; i < Sum::num_elements; ++i) places.index[i] = static_cast<int>(sum.x[i]);
  return places;
}

// wmma::load_matrix_sync for shared memory. nvcc does not see that bf16 comes from there, and would
// make four small loads a lane instead of one for the warp (ldmatrix).
template <typename Tile>
__device__ void load_tile(Tile& to, const __nv_bfloat16* from, int stride) {
#ifdef __CUDA_ARCH__
  static_assert(sizeof(to.x) == 4 * sizeof(uint32_t));
  auto* const words = reinterpret_cast<uint32_t*>(to.x);
#define SKEIN_LOAD_TILE(tile)                                                         \
  asm volatile("wmma.load." tile ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;" \
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])       \
               : "r"(shared_address(from)), "r"(stride)                               \
               : "memory")
  if constexpr (std::is_same_v<Tile, Left>) {
    SKEIN_LOAD_TILE("a.sync.aligned.row");
  } else if constexpr (std::is_same_v<Tile, Right>) {
    SKEIN_LOAD_TILE("b.sync.aligned.row");
  } else {
    static_assert(std::is_same_v<Tile, RightTransposed>);
    SKEIN_LOAD_TILE("b.sync.aligned.col");
  }
#undef SKEIN_LOAD_TILE
#else
  wmma::load_matrix_sync(to, from, stride);
#endif
}

// A barrier, after which the copies of all threads have ended.
__device__ inline void wait_for_copies() {
  commit_copies();
  wait_for_own_copies<0>();
  __syncthreads();
}

// Stores zeros beyond the rows and head_dim. Complete after wait_for_copies().
template <int n, int threads, int rows, int cols>
__device__ void load_rows(const HeadRows& from, int head_dim, Matrix<rows, cols>& to) {
  constexpr int kPacks = cols / n, kRowsAtOnce = threads / kPacks;
  static_assert(threads % kPacks == 0 && rows % kRowsAtOnce == 0);
  const int row_of_thread = static_cast<int>(threadIdx.x) / kPacks;
  const int dim = static_cast<int>(threadIdx.x) % kPacks * n;
#pragma unroll 4
  for (int first = 0; first < rows; first += kRowsAtOnce) {
    const int row = first + row_of_thread;
    copy_pack<n>(&to.bits[row][dim],
                 row_at<const uint16_t>(from.rows, from.first_row + row, from.first_col + dim),
                 row < from.num_rows && dim < head_dim);
  }
}

template <int rows, int cols>
__device__ void load_left(const Matrix<rows, cols>& from, int first_row,
                          Left (&left)[cols / kTile]) {
  for (int i = 0; i < cols / kTile; ++i) {
    load_tile(left[i], from.at(first_row, i * kTile), from.kStride);
  }
}

// left times 16 transposed rows from `first_row` on.
template <int rows, int cols>
__device__ void multiply(const Left (&left)[cols / kTile], const Matrix<rows, cols>& right,
                         int first_row, Sum& product) {
  wmma::fill_fragment(product, 0.0f);
#pragma unroll
  for (int i = 0; i < cols / kTile; ++i) {
    RightTransposed tile;
    load_tile(tile, right.at(first_row, i * kTile), right.kStride);
    wmma::mma_sync(product, left[i], tile, product);
  }
}

// sums += weights rows, over the rows [0, num) and the columns from `first_col` on. `weights` are
// kTile rows of the warp, at the given distance.
template <int num, int rows, int cols, int count>
__device__ void accumulate(const __nv_bfloat16* weights, int weights_stride,
                           const Matrix<rows, cols>& terms, int first_col, Sum (&sums)[count]) {
#pragma unroll 1
  for (int first = 0; first < num; first += kTile) {
    Left left;
    load_tile(left, weights + first, weights_stride);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      Right tile;
      load_tile(tile, terms.at(first, first_col + i * kTile), terms.kStride);
      wmma::mma_sync(sums[i], left, tile, sums[i]);
    }
  }
}

template <int count>
__device__ void fill_zero(Sum (&sums)[count]) {
  for (Sum& sum : sums) wmma::fill_fragment(sum, 0.0f);
}

// Stores sums * factor of the warp's rows and the columns from `first_col` on, in the rows of a
// sequence that begin at `first_position`.
template <int n, int count>
__device__ void store_sums(const Problem& problem, const Sum (&sums)[count], int first_col,
                           float factor, Floats& memory, int sequence, int first_position,
                           const HeadRows& to) {
  constexpr int kPart = count * kTile < kBlock ? count * kTile : kBlock;
  const int row = first_row_of_warp() + half_row(), half_col = lane() % 2 * (kPart / 2);
  const bool is_stored = row < to.num_rows && !problem.is_elsewhere(sequence, first_position + row);
  for (int part = 0; part < count * kTile; part += kPart) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPart / kTile; ++i) {
      wmma::store_matrix_sync(&memory.at[0][i * kTile], sums[part / kTile + i], Floats::kStride,
                              wmma::mem_row_major);
    }
    __syncwarp();
    if (!is_stored) continue;
    for (int i = half_col; i < half_col + kPart / 2; i += n) {
      const int col = first_col + part + i;
      if (col >= problem.head_dim) break;
      Pack<uint16_t, n> pack;
      for (int j = 0; j < n; ++j) {
        pack.at[j] = from_float<bfloat16>(memory.at[half_row()][i + j] * factor).bits;
      }
      store_pack(row_at<uint16_t>(to.rows, to.first_row + row, to.first_col + col), pack);
    }
  }
}

__device__ inline bool is_visible(const Problem& problem, const int32_t* starts, int query,
                                  int key) {
  return starts[query] == starts[key] && (!problem.causal || key <= query);
}

// Calls `function` with the constants (elements of a pack, padded head_dim).
template <typename Function>
void with_constants(const Problem& problem, const Function& function) {
  const auto with_dims = [&](auto pack) {
    if (problem.head_dim <= 64) {
      function(pack, std::integral_constant<int, 64>());
    } else {
      function(pack, std::integral_constant<int, kMaxTensorCoreHeadDim>());
    }
  };
  constexpr int kPack = kPackOf<bfloat16>;
  if (are_heads_packable(kPack, sizeof(bfloat16), problem)) {
    with_dims(std::integral_constant<int, kPack>());
  } else {
    with_dims(std::integral_constant<int, 1>());
  }
}

}  // namespace skein::attention_cuda::tensor_core
