// The AVX-512 path: vdpbf16ps for bf16, fused multiply-add for f32; 6 x 64 sums in registers.
#include "skein/ops/matmul/matmul_kernel.h"
#include "skein/ops/matmul/matmul_tiles-inl.h"
#include "skein/ops/simd/cpu_kind.h"

#if defined(__x86_64__)
#include <immintrin.h>

// Enables AVX-512 for the functions of this file only. No inline function of a header may be
// instantiated here, or the linker could use its AVX-512 version everywhere.
#if defined(__clang__)
#pragma clang attribute push(                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma"))), \
    apply_to = function)
#else
// GCC 12 warns of its own "undefined" vectors (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")
#endif

namespace skein {
namespace {

// clang-format off
#include "skein/ops/matmul/pack_avx512-inl.h"
// clang-format on

constexpr int kTileRows = 6;

template <typename T, int kRows>
inline void accumulate_tile(const char* a, int64_t row_bytes, int64_t step_bytes, const uint32_t* b,
                            int64_t steps, bool first, float* sums) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + i * kPanelCols + j * 16);
    }
  }
#pragma GCC unroll 1
  for (int64_t step = 0; step < steps; ++step, a += step_bytes, b += kPanelCols) {
    __m512i columns[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) columns[j] = _mm512_loadu_si512(b + j * 16);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      int word;
      __builtin_memcpy(&word, a + i * row_bytes, 4);
      const __m512i row = _mm512_set1_epi32(word);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        sum[i][j] = T::multiply_add(sum[i][j], row, columns[j]);
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      _mm512_storeu_ps(sums + i * kPanelCols + j * 16, sum[i][j]);
    }
  }
}

template <typename T>
void accumulate(const MatmulTiles& a, int rows, const uint32_t* b, int64_t steps, bool first,
                float* sums) {
  switch (rows) {
    case 1:
      accumulate_tile<T, 1>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
      break;
    case 2:
      accumulate_tile<T, 2>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
      break;
    case 3:
      accumulate_tile<T, 3>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
      break;
    case 4:
      accumulate_tile<T, 4>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
      break;
    case 5:
      accumulate_tile<T, 5>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
      break;
    default:
      accumulate_tile<T, 6>(a.data, a.row_bytes, a.step_bytes, b, steps, first, sums);
  }
}

inline __m512 load_bias(const MatmulStore& to, int64_t col, __mmask16 mask) {
  if (to.bias_dtype == DType::kF32) {
    return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(to.bias) + col);
  }
  const __m256i half = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(to.bias) + col);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

inline __m512 load_sums(const float* sums, int64_t col, __mmask16 mask, const MatmulStore& to) {
  const __m512 value = _mm512_loadu_ps(sums + col);
  return to.bias ? _mm512_add_ps(value, load_bias(to, col, mask)) : value;
}

void store_f32(const float* sums, int rows, int cols, const MatmulStore& to) {
  for (int row = 0; row < rows; ++row, sums += kPanelCols) {
    float* out = static_cast<float*>(to.out) + row * to.row_stride;
    for (int col = 0; col < cols; col += 16) {
      const __mmask16 mask = mask16(cols - col);
      __m512 value = load_sums(sums, col, mask, to);
      if (to.accumulate && !to.from_zero)
        value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + col), value);
      if (to.stream) {
        _mm512_stream_ps(out + col, value);
      } else {
        _mm512_mask_storeu_ps(out + col, mask, value);
      }
    }
  }
}

void store_bf16(const float* sums, int rows, int cols, const MatmulStore& to) {
  if (to.dtype == DType::kF32) return store_f32(sums, rows, cols, to);
  for (int row = 0; row < rows; ++row, sums += kPanelCols) {
    uint16_t* out = static_cast<uint16_t*>(to.out) + row * to.row_stride;
    for (int col = 0; col < cols; col += 32) {
      const __m512 low = load_sums(sums, col, mask16(cols - col), to);
      const __m512 high = load_sums(sums, col + 16, mask16(cols - col - 16), to);
      // To nearest, ties to even; NaN stays NaN.
      const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(high, low);
      if (to.stream) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out + col), rounded);
      } else {
        _mm512_mask_storeu_epi16(out + col, mask32(cols - col), rounded);
      }
    }
  }
}

using Store = decltype(MatmulKernel::store);

template <typename T, Store kStore>
constexpr MatmulKernel kKernel = {.tile_rows = kTileRows,
                                  .panel_cols = kPanelCols,
                                  .elements_a_step = T::kElementsAStep,
                                  .pack_b = pack_b<T>,
                                  .pack_a = pack_a<T>,
                                  .accumulate = accumulate<T>,
                                  .store = kStore};
constexpr MatmulKernel kF32Kernel = kKernel<F32, store_f32>;
constexpr MatmulKernel kBF16Kernel = kKernel<BF16, store_bf16>;

}  // namespace
}  // namespace skein

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace skein {

MatmulKernel avx512_block_kernel() {
  MatmulKernel kernel = kBF16Kernel;
  kernel.block_steps = kBlockSteps;
  kernel.tile_rows = kernel.a_panel_rows = kBlockPanelRows;
  kernel.pack_b = pack_b_blocks;
  kernel.pack_a = pack_a_blocks;
  return kernel;
}

std::optional<MatmulKernel> avx512_matmul_kernel(DType dtype) {
  if (!cpu_uses_avx512()) return std::nullopt;
  if (dtype == DType::kF32) return kF32Kernel;
  if (!cpu_uses_bf16_dot()) return std::nullopt;
  return kBF16Kernel;
}

}  // namespace skein

#else

namespace skein {
std::optional<MatmulKernel> avx512_matmul_kernel(DType) { return std::nullopt; }
}  // namespace skein

#endif
