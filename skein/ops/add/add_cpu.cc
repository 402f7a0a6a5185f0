#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/add/add_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;

template <typename T>
void add_as(const KernelCall& call, int64_t row) {
  const sm::F32 d;
  const View &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  const T* a_row = a.as<const T>() + row * a.row_stride;
  const T* b_row = b.as<const T>() + row * b.row_stride;
  T* y_row = y.as<T>() + row * y.row_stride;
  const size_t step = hn::Lanes(d), cols = y.cols();
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    sm::store(hn::Add(sm::load(d, a_row + i, n), sm::load(d, b_row + i, n)), d, y_row + i, n);
  }
}

void add_f64(const KernelCall& call, int64_t row) {
  const View &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  const double* a_row = a.as<const double>() + row * a.row_stride;
  const double* b_row = b.as<const double>() + row * b.row_stride;
  double* y_row = y.as<double>() + row * y.row_stride;
  for (int64_t i = 0; i < y.cols(); ++i) y_row[i] = a_row[i] + b_row[i];
}

void add_row(const KernelCall& call, int64_t row) {
  const DType dtype = call.outputs[0].dtype;
  if (dtype == DType::kF64) return add_f64(call, row);
  dtype == DType::kBF16 ? add_as<bfloat16>(call, row) : add_as<float>(call, row);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(add_row);

void run(const KernelCall& call) {
  const int64_t rows = call.outputs[0].rows();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(add_row)(call, row);
}

}  // namespace

void add_add_cpu_kernels(KernelTable& table) { table["add"] = {.run = run}; }

}  // namespace skein
#endif  // HWY_ONCE
