// For any CPU: Highway, at the width of its vectors. bf16 is widened to f32 while packing.
#include "skein/ops/matmul/matmul_kernel.h"

// Sums are arrays of vectors, which scalable ones do not allow.
#ifndef HWY_DISABLED_TARGETS  // cmake/SkeinHighway.cmake
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/matmul/matmul_portable.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <algorithm>
#include <type_traits>

#include "skein/base/text/units.h"
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
  static_assert(kPanelCols % kGroup == 0);
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
void pack_b(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  const auto pack_lanes = b.depth_is_row ? pack_outer<T> : pack_inner<T>;
  pack_lanes(b, depth, lanes, reinterpret_cast<float*>(panels), panel_words, kPanelCols);
}

// ---- A: a panel is a tile

// Steps [begin, end) of a tile of `rows` rows.
template <typename T>
void pack_steps(const MatmulOperand& from, int64_t rows, int64_t begin, int64_t end, float* to) {
  const int64_t row_stride = from.depth_is_row ? 1 : from.row_stride;
  const int64_t step_stride = from.depth_is_row ? from.row_stride : 1;
  for (int64_t step = begin; step < end; ++step) {
    const T* data = static_cast<const T*>(from.data) + step * step_stride;
    for (int64_t row = 0; row < kTileRows; ++row) {
      to[step * kTileRows + row] = row < rows ? static_cast<float>(data[row * row_stride]) : 0.0f;
    }
  }
}

// Where the summed dim is the outer one: whole vectors, whose ends the next steps overwrite. What
// they read beyond the tile lies before the operand's last rows.
template <typename T>
void pack_tile_outer(const MatmulOperand& from, int64_t depth, float* to) {
  const F32 d;
  constexpr int64_t kWritten = (kTileRows + kLanes - 1) / kLanes * kLanes;
  constexpr int64_t kLastSteps = (kWritten - 1) / kTileRows;  // whose ends nobody would overwrite
  const T* data = static_cast<const T*>(from.data);
  const int64_t end = std::max<int64_t>(depth - kLastSteps, 0);
  for (int64_t step = 0; step < end; ++step) {
    for (int64_t i = 0; i < kTileRows; i += kLanes) {
      hn::StoreU(load(d, data + step * from.row_stride + i, kLanes), d, to + step * kTileRows + i);
    }
  }
  pack_steps<T>(from, kTileRows, end, depth, to);
}

#if HWY_TARGET == HWY_SCALAR
template <typename T>
void pack_tile_inner(const MatmulOperand& from, int64_t depth, float* to) {
  pack_steps<T>(from, kTileRows, 0, depth, to);
}
#else
using Quad = hn::FixedTag<uint32_t, 4>;
HWY_INLINE hn::Vec<Quad> load_quad(const float* from) {
  return hn::LoadU(Quad(), reinterpret_cast<const uint32_t*>(from));
}
HWY_INLINE hn::Vec<Quad> load_quad(const bfloat16* from) {
  const hn::FixedTag<uint16_t, 4> halves;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(from));
  return hn::ShiftLeft<16>(hn::PromoteTo(Quad(), bits));
}

// Where it is the inner one: four steps of the six rows are transposed at a time.
template <typename T>
void pack_tile_inner(const MatmulOperand& from, int64_t depth, float* to) {
  static_assert(kTileRows == 6);
  const Quad quad;
  const hn::FixedTag<uint64_t, 2> pairs;
  const hn::FixedTag<uint64_t, 1> pair;
  const T* data = static_cast<const T*>(from.data);
  const auto store_step = [&](auto first_four, auto last_two, int64_t step) HWY_ATTR {
    float* at = to + step * kTileRows;
    hn::StoreU(first_four, pairs, reinterpret_cast<uint64_t*>(at));
    hn::StoreU(last_two, pair, reinterpret_cast<uint64_t*>(at + 4));
  };
  const int64_t end = depth / 4 * 4;
  for (int64_t step = 0; step < end; step += 4) {
    hn::Vec<Quad> row[kTileRows];
    SKEIN_UNROLL for (int i = 0; i < kTileRows; ++i) {
      row[i] = load_quad(data + i * from.row_stride + step);
    }
    const auto lower_01 = hn::BitCast(pairs, hn::InterleaveLower(quad, row[0], row[1]));
    const auto upper_01 = hn::BitCast(pairs, hn::InterleaveUpper(quad, row[0], row[1]));
    const auto lower_23 = hn::BitCast(pairs, hn::InterleaveLower(quad, row[2], row[3]));
    const auto upper_23 = hn::BitCast(pairs, hn::InterleaveUpper(quad, row[2], row[3]));
    const auto lower_45 = hn::BitCast(pairs, hn::InterleaveLower(quad, row[4], row[5]));
    const auto upper_45 = hn::BitCast(pairs, hn::InterleaveUpper(quad, row[4], row[5]));
    store_step(hn::InterleaveLower(pairs, lower_01, lower_23), hn::LowerHalf(pair, lower_45), step);
    store_step(hn::InterleaveUpper(pairs, lower_01, lower_23), hn::UpperHalf(pair, lower_45),
               step + 1);
    store_step(hn::InterleaveLower(pairs, upper_01, upper_23), hn::LowerHalf(pair, upper_45),
               step + 2);
    store_step(hn::InterleaveUpper(pairs, upper_01, upper_23), hn::UpperHalf(pair, upper_45),
               step + 3);
  }
  pack_steps<T>(from, kTileRows, end, depth, to);
}
#endif

template <typename T>
void pack_a(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  const int64_t lane_stride = a.depth_is_row ? 1 : a.row_stride;
  for (int64_t lane = 0; lane < lanes; lane += kTileRows, panels += panel_words) {
    float* to = reinterpret_cast<float*>(panels);
    MatmulOperand tile = a;
    tile.data = static_cast<const T*>(a.data) + lane * lane_stride;
    const int64_t rows = std::min<int64_t>(lanes - lane, kTileRows);
    if (rows < kTileRows) {
      pack_steps<T>(tile, rows, 0, depth, to);
    } else {
      a.depth_is_row ? pack_tile_outer<T>(tile, depth, to) : pack_tile_inner<T>(tile, depth, to);
    }
  }
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
        if (to.accumulate && !to.from_zero) value = hn::Add(load(d, out + col, count), value);
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
          .a_panel_rows = kTileRows,
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
