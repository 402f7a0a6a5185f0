#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/sum_squares/sum_squares_cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "skein/base/error.h"
#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/kernel.h"
#include "skein/ops/segments.h"
#include "skein/tensor/tensor_type.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using VF64 = hn::Vec<F64>;

HWY_INLINE VF64 load(F64 d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, F64>(), from));
}
HWY_INLINE VF64 load(F64 d, const bfloat16* from) {
  const hn::Rebind<uint16_t, F64> u16;
  const hn::Rebind<uint32_t, F64> u32;
  const hn::Rebind<float, F64> f32;
  const auto bits = hn::PromoteTo(u32, hn::LoadU(u16, reinterpret_cast<const uint16_t*>(from)));
  return hn::PromoteTo(d, hn::BitCast(f32, hn::ShiftLeft<16>(bits)));
}

template <typename T>
double sum_of_squares(const T* x, size_t count) {
  const F64 d;
  const size_t step = hn::Lanes(d);
  VF64 sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  size_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    const VF64 x0 = load(d, x + i), x1 = load(d, x + i + step);
    const VF64 x2 = load(d, x + i + 2 * step), x3 = load(d, x + i + 3 * step);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
    sum2 = hn::MulAdd(x2, x2, sum2);
    sum3 = hn::MulAdd(x3, x3, sum3);
  }
  const VF64 sums = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) {
    const double value = static_cast<float>(x[i]);
    sum += value * value;
  }
  return sum;
}

double granule_squares(const View& x, int64_t begin, int64_t count) {
  return x.dtype == DType::kBF16 ? sum_of_squares(x.as<const bfloat16>() + begin, count)
                                 : sum_of_squares(x.as<const float>() + begin, count);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(granule_squares);

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto segments = std::make_shared<SegmentList>(64 * kFlatGranule);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const View& x = call.inputs[i];
    if (!x.is_contiguous()) {
      fail(ErrorCode::kInternal, "[sum_squares] input {} has gaps between its rows", i);
    }
    const bool local = call.attrs.has("counts");
    segments->add_tensor(local ? call.attrs.integers("counts")[i] : x.shape.num_elements());
  }
  return segments;
}

using Bins = std::array<double, exact_sum::kBins>;

void add_segment(Bins& bins, const View& x, const TensorSegment& segment) {
  const int64_t end = segment.begin + segment.count;
  for (int64_t at = segment.begin; at < end; at += kFlatGranule) {
    const int64_t count = std::min(kFlatGranule, end - at);
    exact_sum::add(bins.data(), HWY_DYNAMIC_DISPATCH(granule_squares)(x, at, count));
  }
}

// The sum is exact, so it does not matter which thread adds what, and when.
void run(const KernelCall& call) {
  const auto& segments = *static_cast<const SegmentList*>(call.state.get());
  double* bins = call.outputs[0].as<double>();
  std::fill_n(bins, exact_sum::kBins, 0.0);
  const int64_t num_segments = segments.size();
#pragma omp parallel
  {
    Bins mine{};
#pragma omp for schedule(static) nowait
    for (int64_t i = 0; i < num_segments; ++i) {
      const TensorSegment segment = segments[i];
      add_segment(mine, call.inputs[segment.tensor], segment);
    }
#pragma omp critical(sum_squares)
    exact_sum::add_all(bins, mine.data());
  }
}

}  // namespace

void add_sum_squares_cpu_kernels(KernelTable& table) {
  table["sum_squares"] = {.run = run, .prepare = prepare};
}

}  // namespace skein
#endif  // HWY_ONCE
