#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/softmax_cross_entropy/softmax_cross_entropy_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::VF32;

template <typename T>
float largest(const T* x, size_t cols) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  VF32 most = hn::Set(d, static_cast<float>(x[0])), most2 = most;
  size_t i = 0;
  for (; i + 2 * step <= cols; i += 2 * step) {
    most = hn::Max(most, sm::load(d, x + i, step));
    most2 = hn::Max(most2, sm::load(d, x + i + step, step));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, most2)));
  for (; i < cols; ++i) result = std::max(result, static_cast<float>(x[i]));
  return result;
}

// The sum of e^(x - most).
template <typename T>
float sum_of_exp(const T* x, size_t cols, float most) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 shift = hn::Set(d, most);
  VF32 sum = hn::Zero(d), sum2 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * step <= cols; i += 2 * step) {
    sum = hn::Add(sum, sm::exp(hn::Sub(sm::load(d, x + i, step), shift)));
    sum2 = hn::Add(sum2, sm::exp(hn::Sub(sm::load(d, x + i + step, step), shift)));
  }
  for (; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 e = sm::exp(hn::Sub(sm::load(d, x + i, n), shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum2)));
}

template <typename T, typename G>
void row_as(const KernelCall& call, int64_t row) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d), cols = call.inputs[0].cols();
  const T* x = call.inputs[0].as<const T>() + row * call.inputs[0].row_stride;
  G* dx = call.outputs[1].as<G>() + row * call.outputs[1].row_stride;
  float& loss = call.outputs[0].as<float>()[row];
  const int64_t label = call.inputs[1].as<const int32_t>()[row];
  if (label < 0 || label >= static_cast<int64_t>(cols)) {
    loss = 0.0f;
    std::memset(static_cast<void*>(dx), 0, cols * sizeof(G));
    return;
  }
  const float most = largest(x, cols);
  const float sum = sum_of_exp(x, cols, most), log_sum = std::log(sum);
  const float label_logit = static_cast<float>(x[label]);
  const float probability = std::exp(label_logit - most) / sum;
  loss = log_sum - (label_logit - most);
  const VF32 shift = hn::Set(d, most), scale = hn::Set(d, 1.0f / sum);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 e = sm::exp(hn::Sub(sm::load(d, x + i, n), shift));
    sm::store(hn::Mul(e, scale), d, dx + i, n);
  }
  dx[label] = G(probability - 1.0f);
}

void run_row(const KernelCall& call, int64_t row) {
  const bool narrow = call.inputs[0].dtype == DType::kBF16;
  if (call.outputs[1].dtype == DType::kBF16) {
    narrow ? row_as<bfloat16, bfloat16>(call, row) : row_as<float, bfloat16>(call, row);
  } else {
    narrow ? row_as<bfloat16, float>(call, row) : row_as<float, float>(call, row);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(run_row);

void run(const KernelCall& call) {
  const int64_t rows = call.inputs[0].rows();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(run_row)(call, row);
}

}  // namespace

void add_softmax_cross_entropy_cpu_kernels(KernelTable& table) {
  table["softmax_cross_entropy"] = {.run = run};
}

}  // namespace skein
#endif  // HWY_ONCE
