#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/add/add_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/add/add_rows_cpu.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;

template <typename T, typename B>
void add_as(const View& a, const View& b, int64_t b_stride, const View& y, int64_t row) {
  const sm::F32 d;
  const T* a_row = a.as<const T>() + row * a.row_stride;
  const B* b_row = b.as<const B>() + row * b_stride;
  T* y_row = y.as<T>() + row * y.row_stride;
  const size_t step = hn::Lanes(d), cols = y.cols();
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    sm::store(hn::Add(sm::load(d, a_row + i, n), sm::load(d, b_row + i, n)), d, y_row + i, n);
  }
}

void add_f64(const View& a, const View& b, int64_t b_stride, const View& y, int64_t row) {
  const double* a_row = a.as<const double>() + row * a.row_stride;
  const double* b_row = b.as<const double>() + row * b_stride;
  double* y_row = y.as<double>() + row * y.row_stride;
  for (int64_t i = 0; i < y.cols(); ++i) y_row[i] = a_row[i] + b_row[i];
}

void add_row(const View& a, const View& b, int64_t b_stride, const View& y, int64_t row) {
  if (y.dtype == DType::kF64) return add_f64(a, b, b_stride, y, row);
  const bool narrow = y.dtype == DType::kBF16, narrow_b = b.dtype == DType::kBF16;
  const auto add = narrow ? (narrow_b ? add_as<bfloat16, bfloat16> : add_as<bfloat16, float>)
                          : (narrow_b ? add_as<float, bfloat16> : add_as<float, float>);
  add(a, b, b_stride, y, row);
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
  const View& b = call.inputs[1];
  add_rows(call.inputs[0], b, b.row_stride, call.outputs[0]);
}

}  // namespace

void add_rows(const View& a, const View& b, int64_t b_stride, const View& y) {
  const int64_t rows = y.rows();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) HWY_DYNAMIC_DISPATCH(add_row)(a, b, b_stride, y, row);
}

void add_add_cpu_kernels(KernelTable& table) { table["add"] = {.run = run}; }

}  // namespace skein
#endif  // HWY_ONCE
