// For any CPU: Highway, at the width of its vectors. bf16 is widened to f32 while packing.
#include "skein/ops/matmul/matmul_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/matmul/matmul_portable.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace skein {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kTileRows = 4;
const hn::CappedTag<float, 16> kFloats;
using Floats = hn::Vec<decltype(kFloats)>;

int panel_cols() { return 2 * static_cast<int>(hn::Lanes(kFloats)); }

template <typename T>
HWY_INLINE float widened(const MatmulOperand& from, int64_t index) {
  return static_cast<float>(static_cast<const T*>(from.data)[index]);
}

template <typename T>
void pack(const MatmulOperand& from, int64_t depth, int64_t lanes, uint32_t* panels,
          int64_t panel_words, int width) {
  const int64_t depth_stride = from.depth_is_row ? from.row_stride : 1;
  const int64_t lane_stride = from.depth_is_row ? 1 : from.row_stride;
  for (int64_t first = 0; first < lanes; first += width, panels += panel_words) {
    float* panel = reinterpret_cast<float*>(panels);
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t index = k * depth_stride + (first + i) * lane_stride;
        panel[k * width + i] = first + i < lanes ? widened<T>(from, index) : 0.0f;
      }
    }
  }
}

template <typename T>
void pack_a(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  pack<T>(a, depth, lanes, panels, panel_words, kMatmulPanelRows);
}

template <typename T>
void pack_b(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  pack<T>(b, depth, lanes, panels, panel_words, panel_cols());
}

HWY_INLINE Floats broadcast(const char* from) {
  float value;
  hwy::CopyBytes<4>(from, &value);
  return hn::Set(kFloats, value);
}

// kRows rows of sums, each of two vectors in separate variables: scalable vectors allow no arrays.
template <int kRows>
void accumulate_tile(const MatmulTiles& a, const float* b, int64_t steps, bool first, float* sums) {
  const char* rows = a.data;
  const int64_t width = panel_cols(), half = width / 2;
  const auto start = [&](int row, int64_t at) {
    return first || row >= kRows ? hn::Zero(kFloats) : hn::LoadU(kFloats, sums + row * width + at);
  };
  Floats s00 = start(0, 0), s01 = start(0, half), s10 = start(1, 0), s11 = start(1, half);
  Floats s20 = start(2, 0), s21 = start(2, half), s30 = start(3, 0), s31 = start(3, half);
  for (int64_t step = 0; step < steps; ++step, rows += a.step_bytes, b += width) {
    const Floats b0 = hn::LoadU(kFloats, b), b1 = hn::LoadU(kFloats, b + half);
    const Floats a0 = broadcast(rows);
    s00 = hn::MulAdd(a0, b0, s00);
    s01 = hn::MulAdd(a0, b1, s01);
    if constexpr (kRows > 1) {
      const Floats a1 = broadcast(rows + a.row_bytes);
      s10 = hn::MulAdd(a1, b0, s10);
      s11 = hn::MulAdd(a1, b1, s11);
    }
    if constexpr (kRows > 2) {
      const Floats a2 = broadcast(rows + 2 * a.row_bytes);
      s20 = hn::MulAdd(a2, b0, s20);
      s21 = hn::MulAdd(a2, b1, s21);
    }
    if constexpr (kRows > 3) {
      const Floats a3 = broadcast(rows + 3 * a.row_bytes);
      s30 = hn::MulAdd(a3, b0, s30);
      s31 = hn::MulAdd(a3, b1, s31);
    }
  }
  const auto finish = [&](int row, int64_t at, Floats sum) {
    if (row < kRows) hn::StoreU(sum, kFloats, sums + row * width + at);
  };
  finish(0, 0, s00), finish(0, half, s01), finish(1, 0, s10), finish(1, half, s11);
  finish(2, 0, s20), finish(2, half, s21), finish(3, 0, s30), finish(3, half, s31);
}

void accumulate(const MatmulTiles& a, int rows, const uint32_t* b_panel, int64_t steps, bool first,
                float* sums) {
  const float* b = reinterpret_cast<const float*>(b_panel);
  switch (rows) {
    case 1:
      accumulate_tile<1>(a, b, steps, first, sums);
      break;
    case 2:
      accumulate_tile<2>(a, b, steps, first, sums);
      break;
    case 3:
      accumulate_tile<3>(a, b, steps, first, sums);
      break;
    default:
      accumulate_tile<4>(a, b, steps, first, sums);
  }
}

float bias_at(const MatmulStore& to, int col) {
  if (!to.bias) return 0.0f;
  return to.bias_dtype == DType::kF32
             ? static_cast<const float*>(to.bias)[col]
             : static_cast<float>(static_cast<const bfloat16*>(to.bias)[col]);
}

void store(const float* sums, int rows, int cols, const MatmulStore& to) {
  const int width = panel_cols();
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < cols; ++col) {
      const int64_t at = row * to.row_stride + col;
      const float value = sums[row * width + col] + bias_at(to, col);
      if (to.dtype == DType::kBF16) {
        static_cast<bfloat16*>(to.out)[at] = bfloat16(value);
      } else if (to.accumulate) {
        static_cast<float*>(to.out)[at] += value;
      } else {
        static_cast<float*>(to.out)[at] = value;
      }
    }
  }
}

MatmulKernel kernel(DType dtype) {
  const bool is_f32 = dtype == DType::kF32;
  return {.tile_rows = kTileRows,
          .panel_cols = panel_cols(),
          .pack_b = is_f32 ? pack_b<float> : pack_b<bfloat16>,
          .pack_a = is_f32 ? pack_a<float> : pack_a<bfloat16>,
          .accumulate = accumulate,
          .store = store};
}

}  // namespace

MatmulKernel portable_kernel(DType dtype) { return kernel(dtype); }

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
