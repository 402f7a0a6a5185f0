#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/sum_squares/sum_squares_cpu.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/sum_squares/sum_squares.h"

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

double chunk_squares(const View& x, int64_t begin, int64_t count) {
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

HWY_EXPORT(chunk_squares);

// first_chunk[i]: how many chunks come before input i; one more entry for all of them.
using FirstChunks = std::vector<int64_t>;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto first_chunk = std::make_shared<FirstChunks>(1, 0);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[sum_squares] input {} has gaps between its rows", i);
    }
    first_chunk->push_back(first_chunk->back() + call.outputs[i].shape.num_elements());
  }
  return first_chunk;
}

void run(const KernelCall& call) {
  const FirstChunks& first_chunk = *static_cast<const FirstChunks*>(call.state.get());
  const int64_t num_chunks = first_chunk.back();
#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    const auto after = std::upper_bound(first_chunk.begin(), first_chunk.end(), chunk);
    const int64_t input = after - first_chunk.begin() - 1, local = chunk - first_chunk[input];
    const View& x = call.inputs[input];
    const int64_t begin = local * kSumSquaresChunk;
    const int64_t count = std::min(kSumSquaresChunk, x.shape.num_elements() - begin);
    call.outputs[input].as<double>()[local] = HWY_DYNAMIC_DISPATCH(chunk_squares)(x, begin, count);
  }
}

int64_t num_terms(const KernelCall& call) {
  int64_t count = 0;
  for (const View& chunks : call.inputs) count += chunks.shape.num_elements();
  return count;
}

int64_t tree_scratch_bytes(const KernelCall& call) {
  return num_terms(call) * static_cast<int64_t>(sizeof(double));
}

void run_tree_sum(const KernelCall& call) {
  double* terms = static_cast<double*>(call.scratch);
  double* end = terms;
  for (const View& chunks : call.inputs) {
    end = std::copy_n(chunks.as<const double>(), chunks.shape.num_elements(), end);
  }
  const int64_t count = end - terms;
  for (int64_t gap = 1; gap < count; gap *= 2) {
    for (int64_t i = 0; i + gap < count; i += 2 * gap) terms[i] += terms[i + gap];
  }
  *call.outputs[0].as<double>() = terms[0];
}

}  // namespace

void add_sum_squares_cpu_kernels(KernelTable& table) {
  table["sum_squares"] = {.run = run, .prepare = prepare};
  table["tree_sum"] = {.run = run_tree_sum, .scratch_bytes = tree_scratch_bytes};
}

}  // namespace skein
#endif  // HWY_ONCE
