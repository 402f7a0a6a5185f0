#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/rms_norm/rms_norm_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/block_sums.h"
#include "skein/ops/largest.h"
#include "skein/ops/rms_norm/rms_norm.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::F32;
using sm::load;
using sm::store;
using sm::VF32;

template <typename T>
T* row_of(const View& view, int64_t row) {
  return view.as<T>() + row * view.row_stride;
}

// Stores `value` rounded, and returns what was stored.
HWY_INLINE VF32 store_rounding(VF32 value, float* to, size_t n) {
  store(value, F32(), to, n);
  return value;
}
HWY_INLINE VF32 store_rounding(VF32 value, bfloat16* to, size_t n) {
  const auto words = sm::round_to_bf16(value);
  sm::store_rounded(words, to, n);
  return sm::upper_halves_as_f32(words);
}

template <typename T, typename W>
void forward_row(const KernelCall& call, int64_t row, float epsilon) {
  const F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* x = row_of<const T>(call.inputs[0], row);
  const T* delta = call.has_input(1) ? row_of<const T>(call.inputs[1], row) : nullptr;
  const W* w = call.inputs[2].as<const W>();
  T* y = row_of<T>(call.outputs[0], row);
  T* h = delta == nullptr ? nullptr : row_of<T>(call.outputs[1], row);

  VF32 squares = hn::Zero(d), squares2 = hn::Zero(d);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    VF32 value = load(d, x + i, n);
    if (delta != nullptr) {
      value = store_rounding(hn::Add(value, load(d, delta + i, n)), h + i, n);
    }
    const VF32 sum = hn::MulAdd(value, value, squares);
    squares = squares2;  // two chains, to hide the latency of additions
    squares2 = sum;
  }
  const float mean = hn::GetLane(hn::SumOfLanes(d, hn::Add(squares, squares2))) / cols;
  const float rstd = 1.0f / std::sqrt(mean + epsilon);
  call.outputs[2].as<float>()[row] = rstd;
  const T* source = delta == nullptr ? x : h;
  const VF32 scale = hn::Set(d, rstd);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 normed = hn::Mul(load(d, source + i, n), scale);
    store(hn::Mul(normed, load(d, w + i, n)), d, y + i, n);
  }
}

template <typename T, typename W>
void backward_row(const KernelCall& call, int64_t row, float* dw) {
  const F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* dy = row_of<const T>(call.inputs[0], row);
  const T* dh = call.has_input(1) ? row_of<const T>(call.inputs[1], row) : nullptr;
  const T* h = row_of<const T>(call.inputs[2], row);
  const float rstd = call.inputs[3].as<const float>()[row];
  const W* w = call.inputs[4].as<const W>();
  T* dx = row_of<T>(call.outputs[0], row);

  const VF32 scale = hn::Set(d, rstd);
  VF32 dots = hn::Zero(d), dots2 = hn::Zero(d);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 dy_h = hn::Mul(load(d, dy + i, n), load(d, h + i, n));
    store(hn::MulAdd(dy_h, scale, load(d, dw + i, n)), d, dw + i, n);
    const VF32 sum = hn::MulAdd(dy_h, load(d, w + i, n), dots);
    dots = dots2;
    dots2 = sum;
  }
  const float dot = hn::GetLane(hn::SumOfLanes(d, hn::Add(dots, dots2)));
  const VF32 along_h = hn::Set(d, rstd * rstd * rstd * (dot / cols));
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 dn = hn::Mul(load(d, dy + i, n), load(d, w + i, n));
    VF32 value = hn::NegMulAdd(load(d, h + i, n), along_h, hn::Mul(dn, scale));
    if (dh != nullptr) value = hn::Add(value, load(d, dh + i, n));
    store(value, d, dx + i, n);
  }
}

void forward_rows(const KernelCall& call, int64_t begin, int64_t end, float epsilon) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_w = call.inputs[2].dtype == DType::kBF16;
  const auto row_function =
      narrow ? (narrow_w ? forward_row<bfloat16, bfloat16> : forward_row<bfloat16, float>)
             : (narrow_w ? forward_row<float, bfloat16> : forward_row<float, float>);
  for (int64_t row = begin; row < end; ++row) row_function(call, row, epsilon);
}

void backward_rows(const KernelCall& call, int64_t begin, int64_t end, float* dw) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_w = call.inputs[4].dtype == DType::kBF16;
  const auto row_function =
      narrow ? (narrow_w ? backward_row<bfloat16, bfloat16> : backward_row<bfloat16, float>)
             : (narrow_w ? backward_row<float, bfloat16> : backward_row<float, float>);
  for (int64_t row = begin; row < end; ++row) row_function(call, row, dw);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_rows);

void run(const KernelCall& call) {
  const auto epsilon = static_cast<float>(call.attrs.real("epsilon"));
  for_each_token_block(call.outputs[0].rows(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(forward_rows)(call, begin, end, epsilon);
  });
  store_largest(call, kRmsNorm);
}

int64_t num_weights(const KernelCall& call) { return call.outputs[0].cols(); }

int64_t backward_scratch_bytes(const KernelCall& call) {
  return block_sums_bytes(call.outputs[0].rows(), num_weights(call));
}

void run_backward(const KernelCall& call) {
  add_block_sums(call.outputs[0].rows(), num_weights(call), call.scratch,
                 call.outputs[1].as<float>(), [&](int64_t begin, int64_t end, float* dw) {
                   HWY_DYNAMIC_DISPATCH(backward_rows)(call, begin, end, dw);
                 });
  store_largest(call, kRmsNormBackward);
}

}  // namespace

void add_rms_norm_cpu_kernels(KernelTable& table) {
  table["rms_norm"] = {.run = run};
  table["rms_norm_backward"] = {.run = run_backward, .scratch_bytes = backward_scratch_bytes};
}

}  // namespace skein
#endif  // HWY_ONCE
