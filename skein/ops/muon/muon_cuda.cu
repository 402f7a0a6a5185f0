#include <algorithm>
#include <bit>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/local_elements.h"
#include "skein/ops/muon/muon.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int kBlocksEach = 6;  // of a multiprocessor

// What a kernel draws noise from, and where its elements are in the whole parameter.
struct Noise {
  uint64_t seed;
  uint32_t stream;
  const int32_t* step;
  LocalElements elements;

  // The word of element `at` of the rank's part.
  __device__ uint32_t word(RandomPurpose purpose, int64_t at) const {
    const uint64_t in_box = elements.range_begin + at;
    const uint64_t element = elements.first_element +
                             in_box / elements.run_elements * elements.run_stride +
                             in_box % elements.run_elements;
    const Philox::Block block =
        Philox(seed, purpose, stream, static_cast<uint32_t>(*step)).block(element / 4);
    return block[element % 4];
  }
};

// One of the two bf16 around `value`, by the low 16 bits of `word`.
__device__ bfloat16 round_with(float value, uint32_t word) {
  const uint32_t bits = __float_as_uint(value);
  const uint32_t rounded = value != value ? bits | 0x00400000u : bits + (word & 0xffffu);
  return std::bit_cast<bfloat16>(static_cast<uint16_t>(rounded >> 16));
}

Noise noise_of(const KernelCall& call, int step, const LocalElements& elements) {
  return {.seed = static_cast<uint64_t>(call.attrs.integer("seed")),
          .stream = static_cast<uint32_t>(call.attrs.integer("stream")),
          .step = call.inputs[step].as<const int32_t>(),
          .elements = elements};
}

template <typename M, typename D>
struct Momentum {
  float* gradient;
  M* momentum;
  D* direction;
  const float* scale;
  float one_minus_momentum, momentum_factor;
  bool clears_gradient;
  int64_t padded_count;
  Noise noise;
};

// The operations of muon_cpu.cc in the same order, so that bf16 rounds the same way on both.
template <typename M, typename D>
__global__ void __launch_bounds__(kThreads, kBlocksEach) update_momentum(const Momentum<M, D> u) {
  wait_for_previous_kernel();
  const float scale = *u.scale;
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < u.padded_count;
       at += int64_t{gridDim.x} * kThreads) {
    if (at >= u.noise.elements.count) {
      u.gradient[at] = 0;
      u.direction[at] = D{};
      continue;
    }
    const float g = __fmul_rn(u.gradient[at], scale);
    float m = to_float(u.momentum[at]);
    m = __fmaf_rn(u.one_minus_momentum, __fsub_rn(g, m), m);
    if (u.clears_gradient) u.gradient[at] = 0;
    if constexpr (std::is_same_v<M, bfloat16>) {
      u.momentum[at] = round_with(m, u.noise.word(RandomPurpose::kMomentRounding, at));
    } else {
      u.momentum[at] = m;
    }
    u.direction[at] = from_float<D>(__fmaf_rn(u.momentum_factor, __fsub_rn(m, g), g));
  }
}

template <typename W>
struct Apply {
  const W* weight;
  W* new_weight;  // may be `weight`
  const W* orthogonal;
  float* master;  // null: none
  const float* learning_rate;
  double weight_decay, update_scale;
  bool is_noisy;
  int64_t padded_count;
  Noise noise;
};

template <typename W>
__global__ void __launch_bounds__(kThreads, kBlocksEach) apply(const Apply<W> u) {
  wait_for_previous_kernel();
  const double learning_rate = *u.learning_rate;
  const auto decay = static_cast<float>(1 - __dmul_rn(learning_rate, u.weight_decay));
  const auto step_size = static_cast<float>(__dmul_rn(learning_rate, u.update_scale));
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < u.padded_count;
       at += int64_t{gridDim.x} * kThreads) {
    if (at >= u.noise.elements.count) {
      u.new_weight[at] = W{};
      continue;
    }
    const float before = u.master != nullptr ? u.master[at] : to_float(u.weight[at]);
    const float w = __fmaf_rn(-step_size, to_float(u.orthogonal[at]), __fmul_rn(before, decay));
    if (u.master != nullptr) u.master[at] = w;
    if constexpr (std::is_same_v<W, bfloat16>) {
      u.new_weight[at] = u.is_noisy
                             ? round_with(w, u.noise.word(RandomPurpose::kStochasticRounding, at))
                             : from_float<bfloat16>(w);
    } else {
      u.new_weight[at] = w;
    }
  }
}

unsigned blocks_of(int64_t elements) {
  return std::min(blocks_for(elements, kThreads), resident_blocks(kBlocksEach));
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous() || !call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[muon] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

void run_momentum(const KernelCall& call) {
  const double momentum = call.attrs.real("momentum");
  const int64_t padded_count = call.outputs[0].shape.num_elements();
  with_type(call.outputs[1].dtype, [&](auto moment) {
    with_type(call.outputs[2].dtype, [&](auto direction) {
      using M = decltype(moment);
      using D = decltype(direction);
      const Momentum<M, D> u = {
          .gradient = call.outputs[0].as<float>(),
          .momentum = call.outputs[1].as<M>(),
          .direction = call.outputs[2].as<D>(),
          .scale = call.inputs[2].as<const float>(),
          .one_minus_momentum = static_cast<float>(1 - momentum),
          .momentum_factor = static_cast<float>(momentum),
          .clears_gradient = !keeps_gradient(call.attrs),
          .padded_count = padded_count,
          .noise = noise_of(call, 3, LocalElements::of(call.attrs, padded_count))};
      launch(call, blocks_of(padded_count), kThreads, update_momentum<M, D>, u);
    });
  });
}

void run_apply(const KernelCall& call) {
  const int64_t padded_count = call.outputs[0].shape.num_elements();
  const LocalElements elements = LocalElements::of(call.attrs, padded_count);
  with_type(call.outputs[0].dtype, [&](auto weight) {
    using W = decltype(weight);
    const bool has_master = call.has_input(2);
    const Apply<W> u = {.weight = call.inputs[0].as<const W>() + elements.weight_begin,
                        .new_weight = call.outputs[0].as<W>(),
                        .orthogonal = call.inputs[1].as<const W>(),
                        .master = has_master ? call.outputs[1].as<float>() : nullptr,
                        .learning_rate = call.inputs[3].as<const float>(),
                        .weight_decay = call.attrs.real("weight_decay"),
                        .update_scale = call.attrs.real("update_scale"),
                        .is_noisy = !has_master && call.attrs.flag("stochastic_rounding"),
                        .padded_count = padded_count,
                        .noise = noise_of(call, 4, elements)};
    launch(call, blocks_of(padded_count), kThreads, apply<W>, u);
  });
}

}  // namespace

void add_orthogonalize_cuda_kernel(KernelTable& table);

void add_muon_cuda_kernels(KernelTable& table) {
  table["muon_momentum"] = {.run = run_momentum, .prepare = prepare};
  table["muon_apply"] = {.run = run_apply, .prepare = prepare};
  add_orthogonalize_cuda_kernel(table);
}

}  // namespace skein
