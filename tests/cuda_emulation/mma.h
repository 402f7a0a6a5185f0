// The part of CUDA's warp matrix functions (nvcuda::wmma) that Skein uses: 16 x 16 x 16 tiles of
// bf16, summed in fp32. Which element a lane holds is nobody's promise, and not as on any GPU here.
//
// Source  CUDA C++ Programming Guide, "Warp matrix functions"
#pragma once

#include <cstdio>
#include <cstdlib>

#include "cuda_runtime.h"

struct __nv_bfloat16 {
  unsigned short bits;  // NOLINT(google-runtime-int)
};

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16);
  static constexpr int num_elements = 8;
  T x[num_elements];
};

namespace emulation {

// Of the tile's 256 elements, in rows.
inline int place(int element) { return (element * 32 + cuda_emulation::lane() * 13) % 256; }

template <typename T>
void check(const T* tile, unsigned stride) {
  if (reinterpret_cast<uintptr_t>(tile) % 32 == 0 && stride * sizeof(T) % 16 == 0) return;
  std::fprintf(stderr, "cuda_emulation: a matrix that is not aligned\n");
  std::abort();
}
inline float to_float(__nv_bfloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

// Of the warp, which may not go on before all its lanes are done.
struct Tiles {
  float a[256], b[256];
};
inline Tiles& tiles() {
  static Tiles of_warps[32];
  if (cuda_emulation::lanes_in_warp() != 32) std::abort();
  return of_warps[(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32];
}

}  // namespace emulation

template <typename Use, int m, int n, int k, typename T, typename Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& to, std::type_identity_t<T> value) {
  for (T& x : to.x) x = value;
}

template <typename Use, typename T, typename Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& to, const T* from, unsigned stride) {
  emulation::check(from, stride);
  for (int i = 0; i < 8; ++i) {
    const int place = emulation::place(i), row = place / 16, col = place % 16;
    constexpr bool in_rows = std::is_same_v<Layout, row_major>;
    std::memcpy(&to.x[i], from + (in_rows ? row * stride + col : col * stride + row), sizeof(T));
  }
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& to, const float* from,
                             unsigned stride, layout_t layout) {
  emulation::check(from, stride);
  for (int i = 0; i < 8; ++i) {
    const int place = emulation::place(i), row = place / 16, col = place % 16;
    to.x[i] = from[layout == mem_row_major ? row * stride + col : col * stride + row];
  }
}
inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& from,
                              unsigned stride, layout_t layout) {
  emulation::check(to, stride);
  for (int i = 0; i < 8; ++i) {
    const int place = emulation::place(i), row = place / 16, col = place % 16;
    to[layout == mem_row_major ? row * stride + col : col * stride + row] = from.x[i];
  }
}

template <typename LayoutA, typename LayoutB>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, __nv_bfloat16, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, __nv_bfloat16, LayoutB>& b,
              const fragment<accumulator, 16, 16, 16, float>& c) {
  emulation::Tiles& tiles = emulation::tiles();
  for (int i = 0; i < 8; ++i) {
    tiles.a[emulation::place(i)] = emulation::to_float(a.x[i]);
    tiles.b[emulation::place(i)] = emulation::to_float(b.x[i]);
  }
  __syncwarp();
  for (int i = 0; i < 8; ++i) {
    const int place = emulation::place(i), row = place / 16, col = place % 16;
    float sum = c.x[i];
    for (int k = 0; k < 16; ++k) sum += tiles.a[row * 16 + k] * tiles.b[k * 16 + col];
    d.x[i] = sum;
  }
  __syncwarp();
}

}  // namespace nvcuda::wmma
