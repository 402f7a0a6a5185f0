// For any CPU: Highway, at the width of its vectors. bf16 is widened to f32 while packing.
#include "skein/ops/matmul/matmul_kernel.h"

// Sums are arrays of vectors, which scalable ones do not allow.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/matmul/matmul_portable.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <algorithm>
#include <type_traits>

#include "skein/base/units.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using namespace simd::HWY_NAMESPACE;  // NOLINT: F32, VF32, load, store

// The sums of a tile, an element of A and a step of B fill the registers: 16, or 32.
constexpr int kTileRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kVectors = 4;
#elif HWY_TARGET == HWY_SCALAR
constexpr int kVectors = 8;
#else
constexpr int kVectors = 2;
#endif
constexpr int64_t kLanes = hn::MaxLanes(F32());
constexpr int kPanelCols = static_cast<int>(kVectors * kLanes);

// Where the summed dim is the outer one: rows of lanes follow each other as in the panels.
template <typename T>
void pack_outer(const MatmulOperand& from, int64_t depth, int64_t lanes, float* panels,
                int64_t panel_words, int64_t width) {
  const F32 d;
  for (int64_t k = 0; k < depth; ++k) {
    const T* row = static_cast<const T*>(from.data) + k * from.row_stride;
    float* to = panels + k * width;
    for (int64_t first = 0; first < lanes; first += width, to += panel_words) {
      for (int64_t i = 0; i < width; i += kLanes) {
        const int64_t count = std::clamp<int64_t>(lanes - first - i, 0, kLanes);
        hn::StoreU(load(d, row + first + i, count), d, to + i);
      }
    }
  }
}

// Where it is the inner one: some lanes at a time, so that rows which are a power of two apart stay
// in the L1 cache, are widened and transposed.
template <typename T>
void pack_inner(const MatmulOperand& from, int64_t depth, int64_t lanes, float* panels,
                int64_t panel_words, int64_t width) {
  constexpr int64_t kGroup = 8, kSteps = 32;
  static_assert(kPanelCols % kGroup == 0 && kMatmulPanelRows % kGroup == 0);
  const F32 d;
  alignas(64) float rows[kGroup * kSteps], columns[kSteps * kGroup];
  for (int64_t lane = 0; lane < round_up(lanes, width); lane += kGroup) {
    const T* data = static_cast<const T*>(from.data) + lane * from.row_stride;
    float* panel = panels + lane / width * panel_words + lane % width;
    for (int64_t k = 0; k < depth; k += kSteps) {
      const int64_t steps = std::min(depth - k, kSteps);
      for (int64_t i = 0; i < kGroup; ++i) {
        for (int64_t step = 0; step < kSteps; step += kLanes) {
          const int64_t count = lane + i < lanes ? std::clamp<int64_t>(steps - step, 0, kLanes) : 0;
          hn::Store(load(d, data + i * from.row_stride + k + step, count), d,
                    rows + i * kSteps + step);
        }
      }
      const bool is_whole = steps == kSteps;
      float* to = panel + k * width;
      transpose_words(reinterpret_cast<const uint32_t*>(rows), kSteps, kGroup, kSteps,
                      reinterpret_cast<uint32_t*>(is_whole ? to : columns),
                      is_whole ? width : kGroup);
      for (int64_t step = 0; !is_whole && step < steps; ++step) {
        std::copy_n(columns + step * kGroup, kGroup, to + step * width);
      }
    }
  }
}

template <typename T>
void pack(const MatmulOperand& from, int64_t depth, int64_t lanes, uint32_t* panels,
          int64_t panel_words, int64_t width) {
  const auto pack_lanes = from.depth_is_row ? pack_outer<T> : pack_inner<T>;
  pack_lanes(from, depth, lanes, reinterpret_cast<float*>(panels), panel_words, width);
}

template <typename T>
void pack_a(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  pack<T>(a, depth, lanes, panels, panel_words, kMatmulPanelRows);
}

template <typename T>
void pack_b(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  pack<T>(b, depth, lanes, panels, panel_words, kPanelCols);
}

HWY_INLINE VF32 broadcast(const char* from) {
  float value;
  hwy::CopyBytes<4>(from, &value);
  return hn::Set(F32(), value);
}

template <int kRows>
void accumulate_tile(const MatmulTiles& a, const float* HWY_RESTRICT b, int64_t steps, bool first,
                     float* HWY_RESTRICT sums) {
  const F32 d;
  VF32 sum[kRows][kVectors];
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVectors; ++vec) {
      sum[row][vec] = first ? hn::Zero(d) : hn::LoadU(d, sums + row * kPanelCols + vec * kLanes);
    }
  }
  const char* rows = a.data;
  const int64_t row_bytes = a.row_bytes, step_bytes = a.step_bytes;
  for (int64_t step = 0; step < steps; ++step, rows += step_bytes, b += kPanelCols) {
    VF32 columns[kVectors];
    SKEIN_UNROLL for (int vec = 0; vec < kVectors; ++vec) {
      columns[vec] = hn::LoadU(d, b + vec * kLanes);
    }
    SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
      const VF32 element = broadcast(rows + row * row_bytes);
      SKEIN_UNROLL for (int vec = 0; vec < kVectors; ++vec) {
        sum[row][vec] = hn::MulAdd(element, columns[vec], sum[row][vec]);
      }
    }
  }
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVectors; ++vec) {
      hn::StoreU(sum[row][vec], d, sums + row * kPanelCols + vec * kLanes);
    }
  }
}

template <int kRows = kTileRows>
void accumulate(const MatmulTiles& a, int rows, const uint32_t* b_panel, int64_t steps, bool first,
                float* sums) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return accumulate<kRows - 1>(a, rows, b_panel, steps, first, sums);
  }
  accumulate_tile<kRows>(a, reinterpret_cast<const float*>(b_panel), steps, first, sums);
}

VF32 load_bias(const MatmulStore& to, int col, size_t count) {
  const F32 d;
  return to.bias_dtype == DType::kF32 ? load(d, static_cast<const float*>(to.bias) + col, count)
                                      : load(d, static_cast<const bfloat16*>(to.bias) + col, count);
}

template <typename T>
void store_as(const float* sums, int rows, int cols, const MatmulStore& to) {
  const F32 d;
  for (int row = 0; row < rows; ++row, sums += kPanelCols) {
    T* out = static_cast<T*>(to.out) + row * to.row_stride;
    for (int col = 0; col < cols; col += static_cast<int>(kLanes)) {
      const auto count = static_cast<size_t>(std::min<int64_t>(cols - col, kLanes));
      VF32 value = hn::LoadU(d, sums + col);
      if (to.bias) value = hn::Add(value, load_bias(to, col, count));
      if constexpr (std::is_same_v<T, float>) {
        if (to.accumulate) value = hn::Add(load(d, out + col, count), value);
      }
      store(value, d, out + col, count);
    }
  }
}

void store_sums(const float* sums, int rows, int cols, const MatmulStore& to) {
  const auto store_rows = to.dtype == DType::kBF16 ? store_as<bfloat16> : store_as<float>;
  store_rows(sums, rows, cols, to);
}

MatmulKernel portable_kernel(DType dtype) {
  const bool is_f32 = dtype == DType::kF32;
  return {.tile_rows = kTileRows,
          .panel_cols = kPanelCols,
          .pack_b = is_f32 ? pack_b<float> : pack_b<bfloat16>,
          .pack_a = is_f32 ? pack_a<float> : pack_a<bfloat16>,
          .accumulate = accumulate<>,
          .store = store_sums};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skein
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {

HWY_EXPORT(portable_kernel);

MatmulKernel portable_matmul_kernel(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(portable_kernel)(dtype);
}

}  // namespace skein
#endif  // HWY_ONCE
