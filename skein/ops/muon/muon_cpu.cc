#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/muon/muon_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/local_elements.h"
#include "skein/ops/muon/muon.h"
#include "skein/ops/simd/philox-inl.h"
#include "skein/ops/simd/simd-inl.h"

#ifndef SKEIN_OPS_MUON_CPU_ONCE
#define SKEIN_OPS_MUON_CPU_ONCE
namespace skein {

struct MuonNoise {
  uint64_t seed;
  uint32_t stream, step;
};

struct MomentumUpdate {
  float* gradient;
  void* momentum;
  void* direction;
  bool bf16_momentum, bf16_direction, clears_gradient;
  float scale, one_minus_momentum, momentum_factor;
  MuonNoise noise;
  LocalElements elements;
};

struct MuonUpdate {
  const void* weight;
  void* new_weight;  // may be `weight`
  const void* orthogonal;
  float* master;  // null: none
  bool bf16_weight, noisy_weight;
  float decay;      // 1 - learning_rate weight_decay
  float step_size;  // learning_rate update_scale
  MuonNoise noise;
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

constexpr uint64_t kNoiseBlock = 512;
using Words = uint32_t[kNoiseBlock + sm::kPhiloxSlack];

// Rounds stochastically where there is noise.
template <typename T>
HWY_INLINE void store_with(VF32 value, T* to, size_t n, const uint32_t* noise) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (noise != nullptr) {
      return sm::store_rounded(sm::round_to_bf16(value, sm::load(sm::U32(), noise, n)), to, n);
    }
  }
  sm::store(value, F32(), to, n);
}

template <typename M, typename D>
void momentum_block(const MomentumUpdate& u, size_t begin, size_t count, const uint32_t* noise) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  float* gradient = u.gradient + begin;
  M* momentum = static_cast<M*>(u.momentum) + begin;
  D* direction = static_cast<D*>(u.direction) + begin;
  const VF32 scale = hn::Set(d, u.scale), keep = hn::Set(d, u.one_minus_momentum);
  const VF32 factor = hn::Set(d, u.momentum_factor);
  for (size_t i = 0; i < count; i += step) {
    const size_t n = HWY_MIN(step, count - i);
    const VF32 g = hn::Mul(sm::load(d, gradient + i, n), scale);
    VF32 m = sm::load(d, momentum + i, n);
    m = hn::MulAdd(keep, hn::Sub(g, m), m);
    if (u.clears_gradient) sm::store(hn::Zero(d), d, gradient + i, n);
    store_with(m, momentum + i, n, noise == nullptr ? nullptr : noise + i);
    sm::store(hn::MulAdd(factor, hn::Sub(m, g), g), d, direction + i, n);
  }
}

void momentum_elements(const MomentumUpdate& u, uint64_t begin, uint64_t end) {
  Words noise;
  const auto update =
      u.bf16_momentum
          ? (u.bf16_direction ? momentum_block<bfloat16, bfloat16>
                              : momentum_block<bfloat16, float>)
          : (u.bf16_direction ? momentum_block<float, bfloat16> : momentum_block<float, float>);
  u.elements.for_each_run(
      begin, end, kNoiseBlock, [&](uint64_t at, uint64_t count, uint64_t first) {
        const uint32_t* words =
            !u.bf16_momentum ? nullptr
                             : sm::philox_words(u.noise.seed, RandomPurpose::kMomentRounding,
                                                u.noise.stream, u.noise.step, first, count, noise);
        update(u, at, count, words);
      });
}

template <typename W, bool kMaster>
void apply_block(const MuonUpdate& u, size_t begin, size_t count, const uint32_t* noise) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const W* weight = static_cast<const W*>(u.weight) + begin;
  const W* orthogonal = static_cast<const W*>(u.orthogonal) + begin;
  W* new_weight = static_cast<W*>(u.new_weight) + begin;
  float* master = kMaster ? u.master + begin : nullptr;
  const VF32 decay = hn::Set(d, u.decay), step_size = hn::Set(d, u.step_size);
  for (size_t i = 0; i < count; i += step) {
    const size_t n = HWY_MIN(step, count - i);
    VF32 w;
    if constexpr (kMaster) {
      w = sm::load(d, master + i, n);
    } else {
      w = sm::load(d, weight + i, n);
    }
    w = hn::NegMulAdd(step_size, sm::load(d, orthogonal + i, n), hn::Mul(w, decay));
    if constexpr (kMaster) sm::store(w, d, master + i, n);
    store_with(w, new_weight + i, n, noise == nullptr ? nullptr : noise + i);
  }
}

void apply_elements(const MuonUpdate& u, uint64_t begin, uint64_t end) {
  Words noise;
  const auto update = !u.bf16_weight        ? apply_block<float, false>
                      : u.master != nullptr ? apply_block<bfloat16, true>
                                            : apply_block<bfloat16, false>;
  u.elements.for_each_run(
      begin, end, kNoiseBlock, [&](uint64_t at, uint64_t count, uint64_t first) {
        const uint32_t* words =
            !u.noisy_weight ? nullptr
                            : sm::philox_words(u.noise.seed, RandomPurpose::kStochasticRounding,
                                               u.noise.stream, u.noise.step, first, count, noise);
        update(u, at, count, words);
      });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

namespace skein {
namespace {

HWY_EXPORT(momentum_elements);
HWY_EXPORT(apply_elements);

constexpr int64_t kSegmentElements = 16384;

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous() || !call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[muon] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

MuonNoise noise_of(const KernelCall& call, int step) {
  return {.seed = static_cast<uint64_t>(call.attrs.integer("seed")),
          .stream = static_cast<uint32_t>(call.attrs.integer("stream")),
          .step = static_cast<uint32_t>(*call.inputs[step].as<const int32_t>())};
}

// Clears what a range has behind its elements.
void clear_padding(const View& view, int64_t count) {
  const int64_t used_bytes = count * size_of(view.dtype);
  std::memset(view.as<uint8_t>() + used_bytes, 0, view.num_bytes() - used_bytes);
}

void run_momentum(const KernelCall& call) {
  const double momentum = call.attrs.real("momentum");
  const MomentumUpdate u = {
      .gradient = call.outputs[0].as<float>(),
      .momentum = call.outputs[1].data,
      .direction = call.outputs[2].data,
      .bf16_momentum = call.outputs[1].dtype == DType::kBF16,
      .bf16_direction = call.outputs[2].dtype == DType::kBF16,
      .clears_gradient = !keeps_gradient(call.attrs),
      .scale = *call.inputs[2].as<const float>(),
      .one_minus_momentum = static_cast<float>(1 - momentum),
      .momentum_factor = static_cast<float>(momentum),
      .noise = noise_of(call, 3),
      .elements = LocalElements::of(call.attrs, call.outputs[0].shape.num_elements())};
  const int64_t count = u.elements.count;
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < count; begin += kSegmentElements) {
    HWY_DYNAMIC_DISPATCH(momentum_elements)(u, begin, std::min(count, begin + kSegmentElements));
  }
  clear_padding(call.outputs[0], count);
  clear_padding(call.outputs[2], count);
}

void run_apply(const KernelCall& call) {
  const double learning_rate = *call.inputs[3].as<const float>();
  const LocalElements elements =
      LocalElements::of(call.attrs, call.outputs[0].shape.num_elements());
  const bool has_master = call.has_input(2);
  const bool is_bf16 = call.outputs[0].dtype == DType::kBF16;
  const MuonUpdate u = {
      .weight = call.inputs[0].as<const uint8_t>() +
                elements.weight_begin * size_of(call.outputs[0].dtype),
      .new_weight = call.outputs[0].data,
      .orthogonal = call.inputs[1].data,
      .master = has_master ? call.outputs[1].as<float>() : nullptr,
      .bf16_weight = is_bf16,
      .noisy_weight = is_bf16 && !has_master && call.attrs.flag("stochastic_rounding"),
      .decay = static_cast<float>(1 - learning_rate * call.attrs.real("weight_decay")),
      .step_size = static_cast<float>(learning_rate * call.attrs.real("update_scale")),
      .noise = noise_of(call, 4),
      .elements = elements};
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < elements.count; begin += kSegmentElements) {
    HWY_DYNAMIC_DISPATCH(apply_elements)
    (u, begin, std::min(elements.count, begin + kSegmentElements));
  }
  clear_padding(call.outputs[0], elements.count);
}

}  // namespace

void add_orthogonalize_cpu_kernel(KernelTable& table);

void add_muon_cpu_kernels(KernelTable& table) {
  table["muon_momentum"] = {.run = run_momentum, .prepare = prepare};
  table["muon_apply"] = {.run = run_apply, .prepare = prepare};
  add_orthogonalize_cpu_kernel(table);
}

}  // namespace skein
#endif  // HWY_ONCE
