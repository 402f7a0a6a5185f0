#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/head_norm/head_norm_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/ir/kernel.h"
#include "skein/ops/block_sums.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::F32;
using sm::load;
using sm::store;
using sm::VF32;

template <typename T, typename W>
void forward_head(const T* x, const W* w, T* y, float* rstd, size_t head_dim, float epsilon) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  VF32 squares = hn::Zero(d);
  for (size_t i = 0; i < head_dim; i += step) {
    const VF32 value = load(d, x + i, HWY_MIN(step, head_dim - i));
    squares = hn::MulAdd(value, value, squares);
  }
  const float mean = hn::GetLane(hn::SumOfLanes(d, squares)) / static_cast<float>(head_dim);
  *rstd = 1.0f / std::sqrt(mean + epsilon);
  const VF32 scale = hn::Set(d, *rstd);
  for (size_t i = 0; i < head_dim; i += step) {
    const size_t n = HWY_MIN(step, head_dim - i);
    store(hn::Mul(hn::Mul(load(d, x + i, n), scale), load(d, w + i, n)), d, y + i, n);
  }
}

template <typename T, typename W>
void backward_head(const T* dy, const T* x, float rstd, const W* w, T* dx, float* dw,
                   size_t head_dim) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 scale = hn::Set(d, rstd);
  VF32 dots = hn::Zero(d);
  for (size_t i = 0; i < head_dim; i += step) {
    const size_t n = HWY_MIN(step, head_dim - i);
    const VF32 dy_x = hn::Mul(load(d, dy + i, n), load(d, x + i, n));
    store(hn::MulAdd(dy_x, scale, load(d, dw + i, n)), d, dw + i, n);
    dots = hn::MulAdd(dy_x, load(d, w + i, n), dots);
  }
  const float mean = hn::GetLane(hn::SumOfLanes(d, dots)) / static_cast<float>(head_dim);
  const VF32 along_x = hn::Set(d, rstd * rstd * rstd * mean);
  for (size_t i = 0; i < head_dim; i += step) {
    const size_t n = HWY_MIN(step, head_dim - i);
    const VF32 dn = hn::Mul(load(d, dy + i, n), load(d, w + i, n));
    store(hn::NegMulAdd(load(d, x + i, n), along_x, hn::Mul(dn, scale)), d, dx + i, n);
  }
}

// Heads of tokens [begin, end).
template <typename T, typename W>
void forward_as(const KernelCall& call, int64_t begin, int64_t end) {
  const View &x = call.inputs[0], &y = call.outputs[0], &rstd = call.outputs[1];
  const int64_t head_dim = call.attrs.integer("head_dim");
  const auto epsilon = static_cast<float>(call.attrs.real("epsilon"));
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < rstd.cols(); ++head) {
      forward_head(x.as<const T>() + row * x.row_stride + head * head_dim,
                   call.inputs[1].as<const W>(), y.as<T>() + row * y.row_stride + head * head_dim,
                   rstd.as<float>() + row * rstd.row_stride + head, static_cast<size_t>(head_dim),
                   epsilon);
    }
  }
}

template <typename T, typename W>
void backward_as(const KernelCall& call, int64_t begin, int64_t end, float* dw) {
  const View &dy = call.inputs[0], &x = call.inputs[1], &rstd = call.inputs[2],
             &dx = call.outputs[0];
  const int64_t head_dim = call.attrs.integer("head_dim");
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < rstd.cols(); ++head) {
      const int64_t at = head * head_dim;
      backward_head(
          dy.as<const T>() + row * dy.row_stride + at, x.as<const T>() + row * x.row_stride + at,
          rstd.as<const float>()[row * rstd.row_stride + head], call.inputs[3].as<const W>(),
          dx.as<T>() + row * dx.row_stride + at, dw, static_cast<size_t>(head_dim));
    }
  }
}

void forward_tokens(const KernelCall& call, int64_t begin, int64_t end) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_w = call.inputs[1].dtype == DType::kBF16;
  const auto run = narrow
                       ? (narrow_w ? forward_as<bfloat16, bfloat16> : forward_as<bfloat16, float>)
                       : (narrow_w ? forward_as<float, bfloat16> : forward_as<float, float>);
  run(call, begin, end);
}

void backward_tokens(const KernelCall& call, int64_t begin, int64_t end, float* dw) {
  const bool narrow = call.outputs[0].dtype == DType::kBF16;
  const bool narrow_w = call.inputs[3].dtype == DType::kBF16;
  const auto run = narrow
                       ? (narrow_w ? backward_as<bfloat16, bfloat16> : backward_as<bfloat16, float>)
                       : (narrow_w ? backward_as<float, bfloat16> : backward_as<float, float>);
  run(call, begin, end, dw);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(forward_tokens);
HWY_EXPORT(backward_tokens);

void run(const KernelCall& call) {
  for_each_token_block(call.outputs[0].rows(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(forward_tokens)(call, begin, end);
  });
}

int64_t num_weights(const KernelCall& call) { return call.attrs.integer("head_dim"); }

int64_t backward_scratch_bytes(const KernelCall& call) {
  return block_sums_bytes(call.outputs[0].rows(), num_weights(call));
}

void run_backward(const KernelCall& call) {
  add_block_sums(call.outputs[0].rows(), num_weights(call), call.scratch,
                 call.outputs[1].as<float>(), [&](int64_t begin, int64_t end, float* dw) {
                   HWY_DYNAMIC_DISPATCH(backward_tokens)(call, begin, end, dw);
                 });
}

}  // namespace

void add_head_norm_cpu_kernels(KernelTable& table) {
  table["head_norm"] = {.run = run};
  table["head_norm_backward"] = {.run = run_backward, .scratch_bytes = backward_scratch_bytes};
}

}  // namespace skein
#endif  // HWY_ONCE
