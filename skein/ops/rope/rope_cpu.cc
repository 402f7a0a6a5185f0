#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/rope/rope_cpu.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <algorithm>

#include "skein/ir/kernel.h"
#include "skein/ops/largest.h"
#include "skein/ops/rope/rope.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::rope_cpu::HWY_NAMESPACE {
using namespace simd::HWY_NAMESPACE;  // NOLINT: F32, load, store

// Rotates every head of one row.
template <typename T>
void turn_row(T* row, int64_t cols, int64_t half, const float* cosines, float sign) {
  const F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < half; i += lanes) {
    const auto n = static_cast<size_t>(std::min(lanes, half - i));
    const VF32 cosine = load(d, cosines + i, n);
    const VF32 sine = hn::Mul(load(d, cosines + half + i, n), hn::Set(d, sign));
    for (T* head = row; head < row + cols; head += 2 * half) {
      const VF32 x1 = load(d, head + i, n), x2 = load(d, head + half + i, n);
      store(hn::Sub(hn::Mul(x1, cosine), hn::Mul(x2, sine)), d, head + i, n);
      store(hn::Add(hn::Mul(x2, cosine), hn::Mul(x1, sine)), d, head + half + i, n);
    }
  }
}

template <typename T>
void run_as(const KernelCall& call) {
  const View &q = call.outputs[0], &k = call.outputs[1];  // the memory of inputs 0 and 1
  const View& table = call.inputs[3];
  const auto* positions = call.inputs[2].as<const int32_t>();
  const int64_t half = call.attrs.integer("head_dim") / 2;
  const float sign = call.attrs.flag("inverse") ? -1.0f : 1.0f;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < q.rows(); ++row) {
    const int64_t position = std::clamp<int64_t>(positions[row], 0, table.rows() - 1);
    const float* cosines = table.as<const float>() + position * table.row_stride;
    turn_row(q.as<T>() + row * q.row_stride, q.cols(), half, cosines, sign);
    turn_row(k.as<T>() + row * k.row_stride, k.cols(), half, cosines, sign);
  }
}

void run(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::kBF16) {
    run_as<bfloat16>(call);
  } else {
    run_as<float>(call);
  }
  store_largest(call, kRope);
}

}  // namespace skein::rope_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace rope_cpu {
namespace {
HWY_EXPORT(run);
void dispatch(const KernelCall& call) { HWY_DYNAMIC_DISPATCH(run)(call); }
}  // namespace
}  // namespace rope_cpu

void add_rope_cpu_kernels(KernelTable& table) { table["rope"] = {.run = rope_cpu::dispatch}; }

}  // namespace skein
#endif  // HWY_ONCE
