#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/layer_norm/layer_norm_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/block_sums.h"
#include "skein/ops/largest.h"
#include "skein/ops/layer_norm/layer_norm.h"
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

// Two chains of additions, to hide their latency.
struct Sum {
  VF32 first, second;
};
HWY_INLINE Sum no_sum() { return {hn::Zero(F32()), hn::Zero(F32())}; }
// Puts `longer`, which is sum.first with one more term, at the end.
HWY_INLINE void extend(Sum& sum, VF32 longer) {
  sum.first = sum.second;
  sum.second = longer;
}
HWY_INLINE float total(const Sum& sum) {
  return hn::GetLane(hn::SumOfLanes(F32(), hn::Add(sum.first, sum.second)));
}

// h, and its sum.
template <typename T>
float residual_row(const KernelCall& call, int64_t row) {
  const F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* x = row_of<const T>(call.inputs[0], row);
  const T* residual = call.has_input(1) ? row_of<const T>(call.inputs[1], row) : nullptr;
  T* h = residual == nullptr ? nullptr : row_of<T>(call.outputs[1], row);
  Sum sum = no_sum();
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    VF32 value = load(d, x + i, n);
    if (residual != nullptr) {
      value = store_rounding(hn::Add(value, load(d, residual + i, n)), h + i, n);
    }
    extend(sum, hn::Add(sum.first, value));
  }
  return total(sum);
}

// The sum of (h - mean)^2.
template <typename T>
float centred_squares(const T* h, size_t cols, float mean) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 shift = hn::Set(d, mean);
  Sum squares = no_sum();
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    VF32 centred = hn::Sub(load(d, h + i, n), shift);
    if (n < step) centred = hn::IfThenElseZero(hn::FirstN(d, n), centred);
    extend(squares, hn::MulAdd(centred, centred, squares.first));
  }
  return total(squares);
}

template <typename T, typename W>
void forward_row(const KernelCall& call, int64_t row, float epsilon) {
  const F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const W* w = call.inputs[2].as<const W>();
  const W* b = call.has_input(3) ? call.inputs[3].as<const W>() : nullptr;
  T* y = row_of<T>(call.outputs[0], row);

  const auto count = static_cast<float>(cols);
  const float mean = residual_row<T>(call, row) / count;
  const T* h = row_of<const T>(call.has_input(1) ? call.outputs[1] : call.inputs[0], row);
  const float rstd = 1.0f / std::sqrt(centred_squares(h, cols, mean) / count + epsilon);
  call.outputs[2].as<float>()[row] = mean;
  call.outputs[3].as<float>()[row] = rstd;
  const VF32 shift = hn::Set(d, mean), scale = hn::Set(d, rstd);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 normed = hn::Mul(hn::Sub(load(d, h + i, n), shift), scale);
    const VF32 weight = load(d, w + i, n);
    store(b == nullptr ? hn::Mul(normed, weight) : hn::MulAdd(normed, weight, load(d, b + i, n)), d,
          y + i, n);
  }
}

// Adds to dw and, if there is a bias, to db.
template <typename T, typename W>
void backward_row(const KernelCall& call, int64_t row, float* dw, float* db) {
  const F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* dy = row_of<const T>(call.inputs[0], row);
  const T* dh = call.has_input(1) ? row_of<const T>(call.inputs[1], row) : nullptr;
  const T* h = row_of<const T>(call.inputs[2], row);
  const VF32 shift = hn::Set(d, call.inputs[3].as<const float>()[row]);
  const VF32 scale = hn::Set(d, call.inputs[4].as<const float>()[row]);
  const W* w = call.inputs[5].as<const W>();
  T* dx = row_of<T>(call.outputs[0], row);

  Sum sum = no_sum(), dot = no_sum();  // of dn, and of dn n
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 grad = load(d, dy + i, n);
    const VF32 normed = hn::Mul(hn::Sub(load(d, h + i, n), shift), scale);
    store(hn::MulAdd(grad, normed, load(d, dw + i, n)), d, dw + i, n);
    if (db != nullptr) store(hn::Add(grad, load(d, db + i, n)), d, db + i, n);
    const VF32 dn = hn::Mul(grad, load(d, w + i, n));  // 0 beyond the row
    extend(sum, hn::Add(sum.first, dn));
    extend(dot, hn::MulAdd(dn, normed, dot.first));
  }
  const auto count = static_cast<float>(cols);
  const VF32 mean_dn = hn::Set(d, total(sum) / count), along_n = hn::Set(d, total(dot) / count);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 dn = hn::Mul(load(d, dy + i, n), load(d, w + i, n));
    const VF32 normed = hn::Mul(hn::Sub(load(d, h + i, n), shift), scale);
    const VF32 across = hn::NegMulAdd(normed, along_n, hn::Sub(dn, mean_dn));
    store(dh == nullptr ? hn::Mul(across, scale) : hn::MulAdd(across, scale, load(d, dh + i, n)), d,
          dx + i, n);
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

void backward_rows(const KernelCall& call, int64_t begin, int64_t end, float* dw, float* db) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_w = call.inputs[5].dtype == DType::kBF16;
  const auto row_function =
      narrow ? (narrow_w ? backward_row<bfloat16, bfloat16> : backward_row<bfloat16, float>)
             : (narrow_w ? backward_row<float, bfloat16> : backward_row<float, float>);
  for (int64_t row = begin; row < end; ++row) row_function(call, row, dw, db);
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
  store_largest(call, kLayerNorm);
}

bool has_bias(const KernelCall& call) { return call.has_input(7); }

int64_t backward_scratch_bytes(const KernelCall& call) {
  const View& dx = call.outputs[0];
  return block_sums_bytes(dx.rows(), dx.cols() * (has_bias(call) ? 2 : 1));
}

void run_backward(const KernelCall& call) {
  const View& dx = call.outputs[0];
  const int64_t cols = dx.cols();
  const size_t num_sums = has_bias(call) ? 2 : 1;
  std::array<float*, 2> sums = {};
  for (size_t i = 0; i < num_sums; ++i) sums[i] = call.outputs[1 + i].as<float>();
  add_block_sums(dx.rows(), cols, call.scratch, std::span<float* const>(sums).first(num_sums),
                 [&](int64_t begin, int64_t end, float* dw) {
                   float* const db = num_sums == 2 ? dw + cols : nullptr;
                   HWY_DYNAMIC_DISPATCH(backward_rows)(call, begin, end, dw, db);
                 });
  store_largest(call, kLayerNormBackward);
}

}  // namespace

void add_layer_norm_cpu_kernels(KernelTable& table) {
  table["layer_norm"] = {.run = run};
  table["layer_norm_backward"] = {.run = run_backward, .scratch_bytes = backward_scratch_bytes};
}

}  // namespace skein
#endif  // HWY_ONCE
