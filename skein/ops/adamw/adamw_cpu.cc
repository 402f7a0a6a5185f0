#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/adamw/adamw_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/local_elements.h"
#include "skein/ops/simd/philox-inl.h"
#include "skein/ops/simd/simd-inl.h"

#ifndef SKEIN_OPS_ADAMW_CPU_ONCE
#define SKEIN_OPS_ADAMW_CPU_ONCE
namespace skein {

// One update with all its numbers computed.
struct AdamwUpdate {
  const void* weight;
  void* new_weight;  // may be `weight`
  float* gradient;
  void* exp_avg;
  void* exp_avg_sq;
  float* master;  // null: none
  bool bf16_weight;
  bool bf16_moments;
  bool noisy_weight;
  bool clears_gradient;
  float scale;
  float decay;  // 1 - learning_rate weight_decay
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float epsilon;
  float step_size;         // learning_rate / (1 - beta1^step)
  float inverse_root_bc2;  // 1 / sqrt(1 - beta2^step)
  uint64_t seed;
  uint32_t stream;
  uint32_t step;
  LocalElements elements;
};

}  // namespace skein
#endif

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::F32;
using sm::VF32;
using sm::VU32;

constexpr size_t kNoiseBlock = 512;

struct Noise {
  uint32_t weight[kNoiseBlock + sm::kPhiloxSlack];
  uint32_t moments[kNoiseBlock + sm::kPhiloxSlack];
};

// The dtypes of weight and moments, and the weight's rounding, are fixed per instance.
template <typename W, typename M, bool kMaster, bool kNoisyWeight>
void update_block(const AdamwUpdate& u, size_t begin, size_t count, const uint32_t* weight_noise,
                  const uint32_t* moment_noise) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const W* weight = static_cast<const W*>(u.weight) + begin;
  W* new_weight = static_cast<W*>(u.new_weight) + begin;
  M* exp_avg = static_cast<M*>(u.exp_avg) + begin;
  M* exp_avg_sq = static_cast<M*>(u.exp_avg_sq) + begin;
  float* gradient = u.gradient + begin;
  float* master = kMaster ? u.master + begin : nullptr;
  const VF32 scale = hn::Set(d, u.scale), decay = hn::Set(d, u.decay);
  const VF32 one_minus_beta1 = hn::Set(d, u.one_minus_beta1), beta2 = hn::Set(d, u.beta2);
  const VF32 one_minus_beta2 = hn::Set(d, u.one_minus_beta2), epsilon = hn::Set(d, u.epsilon);
  const VF32 step_size = hn::Set(d, u.step_size), inverse_root = hn::Set(d, u.inverse_root_bc2);
  for (size_t i = 0; i < count; i += step) {
    const size_t n = HWY_MIN(step, count - i);
    const VF32 g = hn::Mul(sm::load(d, gradient + i, n), scale);
    VF32 w, m = sm::load(d, exp_avg + i, n), v = sm::load(d, exp_avg_sq + i, n);
    if constexpr (kMaster) {
      w = sm::load(d, master + i, n);
    } else {
      w = sm::load(d, weight + i, n);
    }
    m = hn::MulAdd(one_minus_beta1, hn::Sub(g, m), m);
    v = hn::MulAdd(hn::Mul(one_minus_beta2, g), g, hn::Mul(beta2, v));
    const VF32 denominator = hn::MulAdd(hn::Sqrt(v), inverse_root, epsilon);
    w = hn::NegMulAdd(step_size, hn::Div(m, denominator), hn::Mul(w, decay));

    if (u.clears_gradient) sm::store(hn::Zero(d), d, gradient + i, n);
    if constexpr (std::is_same_v<M, bfloat16>) {
      const VU32 noise = sm::load(sm::U32(), moment_noise + i, n);
      sm::store_rounded(sm::round_to_bf16(m, noise), exp_avg + i, n);
      sm::store_rounded(sm::round_to_bf16(v, hn::ShiftRight<16>(noise)), exp_avg_sq + i, n);
    } else {
      sm::store(m, d, exp_avg + i, n);
      sm::store(v, d, exp_avg_sq + i, n);
    }
    if constexpr (kMaster) sm::store(w, d, master + i, n);
    if constexpr (kNoisyWeight) {
      sm::store_rounded(sm::round_to_bf16(w, sm::load(sm::U32(), weight_noise + i, n)),
                        new_weight + i, n);
    } else {
      sm::store(w, d, new_weight + i, n);
    }
  }
}

template <typename M>
auto choose_weight(const AdamwUpdate& u) {
  if (!u.bf16_weight) return update_block<float, M, false, false>;
  if (u.master != nullptr) return update_block<bfloat16, M, true, false>;
  return u.noisy_weight ? update_block<bfloat16, M, false, true>
                        : update_block<bfloat16, M, false, false>;
}

void update_elements(const AdamwUpdate& u, size_t begin, size_t end) {
  Noise noise;
  const auto update = u.bf16_moments ? choose_weight<bfloat16>(u) : choose_weight<float>(u);
  u.elements.for_each_run(begin, end, kNoiseBlock, [&](size_t at, size_t count, uint64_t first) {
    const uint32_t *weight_noise = nullptr, *moment_noise = nullptr;
    if (u.noisy_weight) {
      weight_noise = sm::philox_words(u.seed, RandomPurpose::kStochasticRounding, u.stream, u.step,
                                      first, count, noise.weight);
    }
    if (u.bf16_moments) {
      moment_noise = sm::philox_words(u.seed, RandomPurpose::kMomentRounding, u.stream, u.step,
                                      first, count, noise.moments);
    }
    update(u, at, count, weight_noise, moment_noise);
  });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(update_elements);

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous() || !call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[adamw] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

AdamwUpdate make_update(const KernelCall& call) {
  const Attrs& attrs = call.attrs;
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  const double learning_rate = *call.inputs[6].as<const float>();
  const int32_t step = *call.inputs[7].as<const int32_t>();
  AdamwUpdate u{};
  const int64_t element_bytes = size_of(call.outputs[0].dtype);
  u.elements = LocalElements::of(attrs, call.outputs[0].shape.num_elements());
  u.weight = call.inputs[0].as<const uint8_t>() + u.elements.weight_begin * element_bytes;
  u.new_weight = call.outputs[0].data;
  u.gradient = call.outputs[1].as<float>();
  u.exp_avg = call.outputs[2].data;
  u.exp_avg_sq = call.outputs[3].data;
  u.master = call.has_input(4) ? call.outputs[4].as<float>() : nullptr;
  u.bf16_weight = call.outputs[0].dtype == DType::kBF16;
  u.bf16_moments = call.outputs[2].dtype == DType::kBF16;
  u.noisy_weight = u.bf16_weight && u.master == nullptr && attrs.flag("stochastic_rounding");
  u.clears_gradient = !keeps_gradient(attrs);
  u.scale = *call.inputs[5].as<const float>();
  u.decay = static_cast<float>(1 - learning_rate * attrs.real("weight_decay"));
  u.one_minus_beta1 = static_cast<float>(1 - beta1);
  u.beta2 = static_cast<float>(beta2);
  u.one_minus_beta2 = static_cast<float>(1 - beta2);
  u.epsilon = static_cast<float>(attrs.real("epsilon"));
  u.step_size = static_cast<float>(learning_rate / (1 - std::pow(beta1, step)));
  u.inverse_root_bc2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, step)));
  u.seed = static_cast<uint64_t>(attrs.integer("seed"));
  u.stream = static_cast<uint32_t>(attrs.integer("stream"));
  u.step = static_cast<uint32_t>(step);
  return u;
}

// Clears what a new value or a reduced gradient may have after its existing elements.
void clear_padding(const View& view, int64_t count) {
  const int64_t used_bytes = count * size_of(view.dtype);
  std::memset(view.as<uint8_t>() + used_bytes, 0, view.num_bytes() - used_bytes);
}

void run(const KernelCall& call) {
  const AdamwUpdate update = make_update(call);
  const int64_t count = update.elements.count;
  constexpr int64_t kSegmentElements = 16384;
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < count; begin += kSegmentElements) {
    HWY_DYNAMIC_DISPATCH(update_elements)(update, begin, std::min(count, begin + kSegmentElements));
  }
  clear_padding(call.outputs[0], count);
  clear_padding(call.outputs[1], count);
}

}  // namespace

void add_adamw_cpu_kernels(KernelTable& table) {
  table["adamw"] = {.run = run, .prepare = prepare};
}

}  // namespace skein
#endif  // HWY_ONCE
