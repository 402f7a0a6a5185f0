#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/add_bias/add_bias_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;

// The output is the memory of input 0.
template <typename T, typename B>
void add_as(const KernelCall& call, int64_t row) {
  const sm::F32 d;
  const View& y = call.outputs[0];
  T* y_row = y.as<T>() + row * y.row_stride;
  const B* b = call.inputs[1].as<const B>();
  const size_t step = hn::Lanes(d), cols = y.cols();
  for (size_t i = 0; i < cols; i += step) {
    const size_t n = HWY_MIN(step, cols - i);
    sm::store(hn::Add(sm::load(d, y_row + i, n), sm::load(d, b + i, n)), d, y_row + i, n);
  }
}

void add_row(const KernelCall& call, int64_t row) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_b = call.inputs[1].dtype == DType::kBF16;
  narrow ? (narrow_b ? add_as<bfloat16, bfloat16>(call, row) : add_as<bfloat16, float>(call, row))
         : (narrow_b ? add_as<float, bfloat16>(call, row) : add_as<float, float>(call, row));
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

void add_add_bias_cpu_kernels(KernelTable& table) { table["add_bias"] = {.run = run}; }

}  // namespace skein
#endif  // HWY_ONCE
