#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/philox.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/local_elements.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int kWords = 4;  // of a block of Philox, one an element

// Elements of a segment, of which a thread updates n in a turn.
template <int n>
constexpr int64_t kSegmentOf = 8 * kThreads* n;

// Blocks of a multiprocessor. With moments M a thread updates kPackOf<M> elements in a turn, and
// has registers for them.
template <typename M>
constexpr int kBlocksEach = kPackOf<M> > 4 ? 4 : 5;

// One parameter's update.
struct Parameter {
  const void* weight;
  void* new_weight;  // may be `weight`
  float* gradient;
  void *exp_avg, *exp_avg_sq;
  float* master;  // null: none
  double weight_decay;
  int64_t count, padded_count;
  // Where the elements are in the whole parameter: see `localize`.
  uint64_t range_begin, first_element, run_elements, run_stride;
  uint32_t stream;
  bool clears_gradient;
};

// What all parameters share. Numbers that only the device knows are addresses here.
struct Common {
  const float *scale, *learning_rate;
  const int32_t* step;
  double beta1, beta2;
  float one_minus_beta1, beta2_f32, one_minus_beta2, epsilon;
  uint32_t seed_low, seed_high;  // not one number: nvcc would then do half of Philox in 64 bits
  bool operator==(const Common&) const = default;
};

// The argument of a launch: many parameters, whose elements are divided into segments. Arguments
// are copied at each launch, so that few have a small list.
constexpr int kMany = 256, kFew = 8;
template <int kCapacity>
struct Updates {
  Common common;
  int size;
  Parameter parameters[kCapacity];
  int64_t first_segment[kCapacity + 1];  // segments before each, then their number
};
static_assert(sizeof(Updates<kMany>) <= 32764);  // of compute capability 7.0 and later

enum class WeightKind { kF32, kBF16, kNoisyBF16, kBF16WithMaster };

// Factors that are the same for all parameters, and that only the device knows.
struct Factors {
  uint32_t step;
  float scale;
  double learning_rate;
  float step_size;         // learning_rate / (1 - beta1^step)
  float inverse_root_bc2;  // 1 / sqrt(1 - beta2^step)
};

// Every thread of the block calls, first of all. Two warps raise to the power of `step`, which
// takes a while: of numbers that no kernel writes, so that the one before may still run.
__device__ Factors make_factors(const Common& u) {
  __shared__ float corrections[2];
  const int32_t step = *u.step;
  const double learning_rate = *u.learning_rate;
  if (threadIdx.x == 0 || threadIdx.x == 32) {
    const bool first = threadIdx.x == 0;
    const double correction = 1 - pow(first ? u.beta1 : u.beta2, static_cast<double>(step));
    corrections[first ? 0 : 1] =
        static_cast<float>(first ? learning_rate / correction : 1 / sqrt(correction));
  }
  __syncthreads();
  wait_for_previous_kernel();
  return {.step = static_cast<uint32_t>(step),
          .scale = *u.scale,
          .learning_rate = learning_rate,
          .step_size = corrections[0],
          .inverse_root_bc2 = corrections[1]};
}

// The index in the whole parameter of this rank's element `at`.
__device__ uint64_t element_of(const Parameter& u, int64_t at) {
  const uint64_t in_box = u.range_begin + at;
  if (in_box < u.run_elements) return u.first_element + in_box;  // often there is one run
  return u.first_element + in_box / u.run_elements * u.run_stride + in_box % u.run_elements;
}

// The operations of adamw_cpu.cc in the same order, so that a bf16 weight rounds the same way on
// both.
__device__ void update_element(const Common& u, const Factors& f, float decay, float gradient,
                               float& w, float& m, float& v) {
  const float g = __fmul_rn(gradient, f.scale);
  m = __fmaf_rn(u.one_minus_beta1, __fsub_rn(g, m), m);
  v = __fmaf_rn(__fmul_rn(u.one_minus_beta2, g), g, __fmul_rn(u.beta2_f32, v));
  const float denominator = __fmaf_rn(__fsqrt_rn(v), f.inverse_root_bc2, u.epsilon);
  w = __fmaf_rn(-f.step_size, __fdiv_rn(m, denominator), __fmul_rn(w, decay));
}

// Draws the words of n elements from `element` on: those of whole blocks of Philox, or one of them.
template <int n>
__device__ void draw(uint32_t (&words)[n], const Philox& philox, uint64_t element) {
  if constexpr (n % kWords == 0) {
    for (int first = 0; first < n; first += kWords) {
      const Philox::Block block = philox.block((element + first) / kWords);
      for (int i = 0; i < kWords; ++i) words[first + i] = block[i];
    }
  } else {  // selected, as registers cannot be indexed
    const Philox::Block block = philox.block(element / kWords);
    const uint32_t low = element % 2 == 0 ? block[0] : block[1];
    const uint32_t high = element % 2 == 0 ? block[2] : block[3];
    words[0] = element % 4 < 2 ? low : high;
  }
}

// Rounds each value to one of the two bf16 around it: adds 16 bits of noise below the bf16, of the
// lower halves of `noise` or the upper ones. Bytes are permuted, since nvcc makes more instructions
// of shifts.
template <int n>
__device__ Pack<bfloat16, n> round_with(const float (&values)[n], const uint32_t (&noise)[n],
                                        bool upper) {
  uint32_t words[n];  // whose upper halves are the bf16
  for (int i = 0; i < n; ++i) {
    const uint32_t bits = __float_as_uint(values[i]);
    const bool is_nan = values[i] != values[i];
    words[i] =
        is_nan ? bits | 0x00400000u : bits + __byte_perm(noise[i], 0, upper ? 0x4432 : 0x4410);
  }
  if constexpr (n == 1) {
    return std::bit_cast<Pack<bfloat16, 1>>(static_cast<uint16_t>(words[0] >> 16));
  } else {
    Pack<uint32_t, n / 2> pairs;
    for (int i = 0; i < n; i += 2) {
      pairs.at[i / 2] = __byte_perm(words[i], words[i + 1], 0x7632);
    }
    return std::bit_cast<Pack<bfloat16, n>>(pairs);
  }
}

// Updates n elements, a pack or one, of which `at` is the first.
template <WeightKind kind, typename M, int n>
__device__ void update_pack(const Common& common, const Factors& factors, const Parameter& u,
                            float decay, int64_t at) {
  using W = std::conditional_t<kind == WeightKind::kF32, float, bfloat16>;
  const uint64_t seed = uint64_t{common.seed_high} << 32 | common.seed_low;
  W* const new_weight = static_cast<W*>(u.new_weight) + at;
  float* const gradient = u.gradient + at;
  M* const exp_avg = static_cast<M*>(u.exp_avg) + at;
  M* const exp_avg_sq = static_cast<M*>(u.exp_avg_sq) + at;
  float g[n], w[n], m[n], v[n];
  to_floats(g, load_pack<n>(gradient));
  if constexpr (kind == WeightKind::kBF16WithMaster) {
    to_floats(w, load_pack<n>(u.master + at));
  } else {
    to_floats(w, load_pack<n>(static_cast<const W*>(u.weight) + at));
  }
  to_floats(m, load_pack<n>(exp_avg));
  to_floats(v, load_pack<n>(exp_avg_sq));
  for (int i = 0; i < n; ++i) update_element(common, factors, decay, g[i], w[i], m[i], v[i]);

  const uint64_t element = element_of(u, at);
  uint32_t noise[n];
  if (u.clears_gradient) store_pack(gradient, Pack<float, n>{});
  if constexpr (std::is_same_v<M, bfloat16>) {
    draw(noise, Philox(seed, RandomPurpose::kMomentRounding, u.stream, factors.step), element);
    store_pack(exp_avg, round_with(m, noise, false));
    store_pack(exp_avg_sq, round_with(v, noise, true));
  } else {
    store_pack(exp_avg, from_floats<M>(m));
    store_pack(exp_avg_sq, from_floats<M>(v));
  }
  if constexpr (kind == WeightKind::kBF16WithMaster) {
    store_pack(u.master + at, from_floats<float>(w));
  }
  if constexpr (kind == WeightKind::kNoisyBF16) {
    draw(noise, Philox(seed, RandomPurpose::kStochasticRounding, u.stream, factors.step), element);
    store_pack_global(new_weight, round_with(w, noise, false));
  } else {
    store_pack_global(new_weight, from_floats<W>(w));
  }
}

// A block takes one segment after another.
template <WeightKind kind, typename M, int n, int kCapacity>
__global__ void __launch_bounds__(kThreads, kBlocksEach<M>)
    update_parameters(const __grid_constant__ Updates<kCapacity> updates) {
  using W = std::conditional_t<kind == WeightKind::kF32, float, bfloat16>;
  const Factors factors = make_factors(updates.common);
  int index = 0;
  for (int64_t segment = blockIdx.x; segment < updates.first_segment[updates.size];
       segment += gridDim.x) {
    while (segment >= updates.first_segment[index + 1]) ++index;
    const Parameter& u = updates.parameters[index];
    const auto decay = static_cast<float>(1 - __dmul_rn(factors.learning_rate, u.weight_decay));
    const int64_t begin = (segment - updates.first_segment[index]) * kSegmentOf<n>;
    const int64_t end = std::min(begin + kSegmentOf<n>, u.padded_count);
    int64_t at = begin + static_cast<int>(threadIdx.x) * n;
    for (const int64_t last = std::min(end, u.count); at < last; at += kThreads * n) {
      update_pack<kind, M, n>(updates.common, factors, u, decay, at);
    }
    for (; at < end; at += kThreads * n) {
      store_pack(static_cast<W*>(u.new_weight) + at, Pack<W, n>{});
      store_pack(u.gradient + at, Pack<float, n>{});
    }
  }
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.inputs[i].is_contiguous() || !call.outputs[i].is_contiguous()) {
      fail(ErrorCode::kInternal, "[adamw] operand {} has gaps between its rows", i);
    }
  }
  return nullptr;
}

Common common_of(const KernelCall& call) {
  const Attrs& attrs = call.attrs;
  const double beta1 = attrs.real("beta1"), beta2 = attrs.real("beta2");
  const auto seed = static_cast<uint64_t>(attrs.integer("seed"));
  return {.scale = call.inputs[5].as<const float>(),
          .learning_rate = call.inputs[6].as<const float>(),
          .step = call.inputs[7].as<const int32_t>(),
          .beta1 = beta1,
          .beta2 = beta2,
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2_f32 = static_cast<float>(beta2),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .epsilon = static_cast<float>(attrs.real("epsilon")),
          .seed_low = static_cast<uint32_t>(seed),
          .seed_high = static_cast<uint32_t>(seed >> 32)};
}

Parameter parameter_of(const KernelCall& call) {
  const int64_t padded_count = call.outputs[0].shape.num_elements();
  const LocalElements elements = LocalElements::of(call.attrs, padded_count);
  const int64_t weight_bytes = size_of(call.outputs[0].dtype);
  return {
      .weight = call.inputs[0].as<const uint8_t>() + elements.weight_begin * weight_bytes,
      .new_weight = call.outputs[0].data,
      .gradient = call.outputs[1].as<float>(),
      .exp_avg = call.outputs[2].data,
      .exp_avg_sq = call.outputs[3].data,
      .master = call.has_input(4) ? call.outputs[4].as<float>() : nullptr,
      .weight_decay = call.attrs.real("weight_decay"),
      .count = elements.count,
      .padded_count = padded_count,
      .range_begin = elements.range_begin,
      .first_element = elements.first_element,
      .run_elements = elements.run_elements,
      .run_stride = elements.run_stride,
      .stream = static_cast<uint32_t>(call.attrs.integer("stream")),
      .clears_gradient = !keeps_gradient(call.attrs),
  };
}

WeightKind kind_of(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::kF32) return WeightKind::kF32;
  if (call.has_input(4)) return WeightKind::kBF16WithMaster;
  return call.attrs.flag("stochastic_rounding") ? WeightKind::kNoisyBF16 : WeightKind::kBF16;
}

// Whether all operands can be moved in packs of n, each of which takes the noise of whole blocks of
// Philox.
bool has_packs(const Parameter& u, int n) {
  const void* const operands[] = {u.weight,  u.new_weight, u.gradient,
                                  u.exp_avg, u.exp_avg_sq, u.master};
  for (const void* operand : operands) {
    if (reinterpret_cast<uintptr_t>(operand) % (n * sizeof(float)) != 0) return false;
  }
  const bool one_run = u.range_begin + u.count <= u.run_elements;
  const auto fits = [n](uint64_t elements) { return elements % n == 0; };
  return fits(u.count) && fits(u.padded_count) && fits(u.range_begin) && fits(u.first_element) &&
         (one_run || (fits(u.run_elements) && fits(u.run_stride)));
}

template <WeightKind kind, typename M, int n, int kCapacity>
void launch_updates(const KernelCall& call, const std::vector<Parameter>& parameters) {
  const auto updates = std::make_unique<Updates<kCapacity>>();
  updates->common = common_of(call);
  updates->size = static_cast<int>(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    updates->parameters[i] = parameters[i];
    updates->first_segment[i + 1] =
        updates->first_segment[i] + blocks_for(parameters[i].padded_count, kSegmentOf<n>);
  }
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(
      updates->first_segment[parameters.size()], resident_blocks(kBlocksEach<M>)));
  launch(call, blocks, kThreads, update_parameters<kind, M, n, kCapacity>, *updates);
}

template <WeightKind kind, typename M, int n>
void launch_updates(const KernelCall& call, const std::vector<Parameter>& parameters) {
  parameters.size() <= kFew ? launch_updates<kind, M, n, kFew>(call, parameters)
                            : launch_updates<kind, M, n, kMany>(call, parameters);
}

template <typename M, int n>
void launch_updates(const KernelCall& call, const std::vector<Parameter>& parameters) {
  switch (kind_of(call)) {
    case WeightKind::kF32:
      return launch_updates<WeightKind::kF32, M, n>(call, parameters);
    case WeightKind::kBF16:
      return launch_updates<WeightKind::kBF16, M, n>(call, parameters);
    case WeightKind::kNoisyBF16:
      return launch_updates<WeightKind::kNoisyBF16, M, n>(call, parameters);
    case WeightKind::kBF16WithMaster:
      return launch_updates<WeightKind::kBF16WithMaster, M, n>(call, parameters);
  }
}

// Of the calls, those that one launch can take: of one kind, with packs or all without.
template <typename M>
void run_alike(const std::vector<const KernelCall*>& calls, WeightKind kind, bool packs) {
  std::vector<Parameter> parameters;
  const KernelCall* first = nullptr;
  const auto launch_all = [&] {
    if (parameters.empty()) return;
    packs ? launch_updates<M, kPackOf<M>>(*first, parameters)
          : launch_updates<M, 1>(*first, parameters);
    parameters.clear();
  };
  for (const KernelCall* call : calls) {
    const Parameter parameter = parameter_of(*call);
    if (kind_of(*call) != kind || has_packs(parameter, kPackOf<M>) != packs) continue;
    if (parameters.empty()) first = call;
    parameters.push_back(parameter);
    if (parameters.size() == kMany) launch_all();
  }
  launch_all();
}

// Which of the calls are updates of one and the same step.
bool are_of_one_step(const KernelCall& a, const KernelCall& b) {
  return common_of(a) == common_of(b) && a.outputs[2].dtype == b.outputs[2].dtype;
}

void run_together(const std::vector<const KernelCall*>& calls) {
  for (size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
    while (end < calls.size() && are_of_one_step(*calls[begin], *calls[end])) ++end;
    const std::vector<const KernelCall*> alike(calls.begin() + begin, calls.begin() + end);
    with_type(calls[begin]->outputs[2].dtype, [&](auto moment) {
      for (const WeightKind kind : {WeightKind::kF32, WeightKind::kBF16, WeightKind::kNoisyBF16,
                                    WeightKind::kBF16WithMaster}) {
        for (const bool packs : {true, false}) run_alike<decltype(moment)>(alike, kind, packs);
      }
    });
  }
}

void run(const KernelCall& call) { run_together({&call}); }

}  // namespace

void add_adamw_cuda_kernels(KernelTable& table) {
  table["adamw"] = {.run = run, .prepare = prepare, .run_together = run_together};
}

}  // namespace skein
