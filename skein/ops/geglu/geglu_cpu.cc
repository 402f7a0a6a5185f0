#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/geglu/geglu_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/geglu/geglu.h"
#include "skein/ops/gelu/gelu-inl.h"
#include "skein/ops/gelu/gelu.h"
#include "skein/ops/largest.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::VF32;

template <typename T>
T* row_of(const View& view, int64_t row) {
  return view.as<T>() + row * view.row_stride;
}

template <typename T, bool approximate>
void forward_row(const KernelCall& call, int64_t row) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* gate = row_of<const T>(call.inputs[0], row);
  const T* up = row_of<const T>(call.inputs[1], row);
  T* y = row_of<T>(call.outputs[0], row);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 g = sm::load(d, gate + i, n);
    const VF32 activated = hn::Mul(g, sm::gelu<T, approximate>(g).share);
    sm::store(hn::Mul(activated, sm::load(d, up + i, n)), d, y + i, n);
  }
}

template <typename T, bool approximate>
void backward_row(const KernelCall& call, int64_t row) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d), cols = call.outputs[0].cols();
  const T* dy = row_of<const T>(call.inputs[0], row);
  const T* gate = row_of<const T>(call.inputs[1], row);
  const T* up = row_of<const T>(call.inputs[2], row);
  T* dgate = row_of<T>(call.outputs[0], row);
  T* dup = row_of<T>(call.outputs[1], row);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 grad = sm::load(d, dy + i, n), g = sm::load(d, gate + i, n);
    const sm::GeluTerms terms = sm::gelu<T, approximate>(g);
    const VF32 grad_up = hn::Mul(grad, sm::load(d, up + i, n));
    sm::store(hn::Mul(grad, hn::Mul(g, terms.share)), d, dup + i, n);
    sm::store(hn::Mul(grad_up, terms.slope), d, dgate + i, n);
  }
}

void forward(const KernelCall& call, bool approximate, int64_t row) {
  if (call.outputs[0].dtype == DType::kBF16) {
    approximate ? forward_row<bfloat16, true>(call, row) : forward_row<bfloat16, false>(call, row);
  } else {
    approximate ? forward_row<float, true>(call, row) : forward_row<float, false>(call, row);
  }
}
void backward(const KernelCall& call, bool approximate, int64_t row) {
  if (call.outputs[0].dtype == DType::kBF16) {
    approximate ? backward_row<bfloat16, true>(call, row)
                : backward_row<bfloat16, false>(call, row);
  } else {
    approximate ? backward_row<float, true>(call, row) : backward_row<float, false>(call, row);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void run(const KernelCall& call) {
  const int64_t rows = call.outputs[0].rows();
  const bool approximate = is_approximate_gelu(call.attrs);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(forward)(call, approximate, row);
  store_largest(call, kGeglu);
}

void run_backward(const KernelCall& call) {
  const int64_t rows = call.outputs[0].rows();
  const bool approximate = is_approximate_gelu(call.attrs);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(backward)(call, approximate, row);
  store_largest(call, kGegluBackward);
}

}  // namespace

void add_geglu_cpu_kernels(KernelTable& table) {
  table["geglu"] = {.run = run};
  table["geglu_backward"] = {.run = run_backward};
}

}  // namespace skein
#endif  // HWY_ONCE
