// The statistics of a row of logits, for softmax: its largest, and the sum of exponentials.
//
// Included by *_cpu.cc files after hwy/foreach_target.h; compiled once per instruction set. The
// bits follow from the row alone.
#if defined(SKEIN_OPS_SOFTMAX_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_OPS_SOFTMAX_ROW_INL_H_
#undef SKEIN_OPS_SOFTMAX_ROW_INL_H_
#else
#define SKEIN_OPS_SOFTMAX_ROW_INL_H_
#endif

#include <algorithm>

#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::simd::HWY_NAMESPACE {

// The largest of a row that is not empty.
template <typename T>
float largest(const T* x, size_t cols) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  VF32 most = hn::Set(d, static_cast<float>(x[0])), most2 = most;
  size_t i = 0;
  for (; i + 2 * step <= cols; i += 2 * step) {
    most = hn::Max(most, load(d, x + i, step));
    most2 = hn::Max(most2, load(d, x + i + step, step));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, most2)));
  for (; i < cols; ++i) result = std::max(result, static_cast<float>(x[i]));
  return result;
}

// The sum of e^(x - most).
template <typename T>
float sum_of_exp(const T* x, size_t cols, float most) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 shift = hn::Set(d, most);
  VF32 sum = hn::Zero(d), sum2 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * step <= cols; i += 2 * step) {
    sum = hn::Add(sum, exp(hn::Sub(load(d, x + i, step), shift)));
    sum2 = hn::Add(sum2, exp(hn::Sub(load(d, x + i + step, step), shift)));
  }
  for (; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 e = exp(hn::Sub(load(d, x + i, n), shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum2)));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
