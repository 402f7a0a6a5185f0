#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/swiglu/swiglu_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/largest.h"
#include "skein/ops/simd/sigmoid-inl.h"
#include "skein/ops/swiglu/swiglu.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::VF32;

template <typename T>
void forward_row(const T* gate, const T* up, T* y, size_t cols) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 g = sm::load(d, gate + i, n), silu = hn::Mul(g, sm::sigmoid<T>(g).s);
    sm::store(hn::Mul(silu, sm::load(d, up + i, n)), d, y + i, n);
  }
}

template <typename T>
void backward_row(const T* dy, const T* gate, const T* up, T* dgate, T* dup, size_t cols) {
  const sm::F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 one = hn::Set(d, 1.0f);
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    const VF32 grad = sm::load(d, dy + i, n), g = sm::load(d, gate + i, n);
    const auto [s, rest] = sm::sigmoid<T>(g);
    const VF32 grad_s = hn::Mul(grad, s);
    const VF32 slope = hn::MulAdd(g, rest, one);
    const VF32 grad_up = hn::Mul(grad_s, sm::load(d, up + i, n));
    sm::store(hn::Mul(grad_s, g), d, dup + i, n);
    sm::store(hn::Mul(grad_up, slope), d, dgate + i, n);
  }
}

template <typename T>
T* row_of(const View& view, int64_t row) {
  return view.as<T>() + row * view.row_stride;
}

template <typename T>
void forward_as(const KernelCall& call, int64_t row) {
  forward_row(row_of<const T>(call.inputs[0], row), row_of<const T>(call.inputs[1], row),
              row_of<T>(call.outputs[0], row), call.outputs[0].cols());
}

template <typename T>
void backward_as(const KernelCall& call, int64_t row) {
  backward_row(row_of<const T>(call.inputs[0], row), row_of<const T>(call.inputs[1], row),
               row_of<const T>(call.inputs[2], row), row_of<T>(call.outputs[0], row),
               row_of<T>(call.outputs[1], row), call.outputs[0].cols());
}

void forward(const KernelCall& call, int64_t row) {
  call.outputs[0].dtype == DType::kBF16 ? forward_as<bfloat16>(call, row)
                                        : forward_as<float>(call, row);
}
void backward(const KernelCall& call, int64_t row) {
  call.outputs[0].dtype == DType::kBF16 ? backward_as<bfloat16>(call, row)
                                        : backward_as<float>(call, row);
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
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(forward)(call, row);
  store_largest(call, kSwiglu);
}

void run_backward(const KernelCall& call) {
  const int64_t rows = call.outputs[0].rows();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(backward)(call, row);
  store_largest(call, kSwigluBackward);
}

}  // namespace

void add_swiglu_cpu_kernels(KernelTable& table) {
  table["swiglu"] = {.run = run};
  table["swiglu_backward"] = {.run = run_backward};
}

}  // namespace skein
#endif  // HWY_ONCE
