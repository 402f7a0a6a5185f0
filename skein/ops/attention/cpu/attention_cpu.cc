#include "skein/ops/attention/cpu/attention_cpu.h"

#include <omp.h>

#include "skein/base/error.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace attention_cpu {
namespace {

ChosenKernels state_of(const KernelCall& call) {
  if (call.state != nullptr) return *static_cast<const ChosenKernels*>(call.state.get());
  return {&kernels_for(call.outputs[0].dtype, best_products()), omp_get_max_threads()};
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  const int first = call.inputs.size() > 4 ? 1 : 0;  // backward begins with the gradient
  const int64_t parts = call.attrs.has("parts") ? call.attrs.integer("parts") : 1;
  const int64_t q_rows = call.inputs[first].rows(), k_rows = call.inputs[first + 1].rows();
  if (q_rows * parts != k_rows) {
    fail(ErrorCode::kInternal,
         "[attention] {} query rows are not one part of {} of {} key rows: was the node localized?",
         q_rows, parts, k_rows);
  }
  return std::make_shared<ChosenKernels>(state_of(call));
}

Problem bind(const KernelCall& call, bool backward) {
  const int first = backward ? 1 : 0;
  Problem problem;
  problem.q = call.inputs[first];
  problem.k = call.inputs[first + 1];
  problem.v = call.inputs[first + 2];
  problem.start = call.inputs[backward ? 6 : 3].as<const int32_t>();
  if (backward) {
    problem.grad = call.inputs[0];
    problem.o = call.inputs[4];
    problem.lse = call.inputs[5];
    problem.dq = call.outputs[0];
    problem.dk = call.outputs[1];
    problem.dv = call.outputs[2];
  } else {
    problem.o = call.outputs[0];
    problem.lse = call.outputs[1];
  }
  problem.head_dim = call.attrs.integer("head_dim");
  problem.sequence_length = call.attrs.integer("sequence_length");
  problem.num_sequences = problem.k.rows() / problem.sequence_length;
  if (call.attrs.has("part")) {
    problem.part = call.attrs.integer("part");
    problem.parts = call.attrs.integer("parts");
  }
  problem.heads = problem.q.cols() / problem.head_dim;
  problem.kv_heads = problem.k.cols() / problem.head_dim;
  problem.causal = call.attrs.flag("causal");
  problem.scale = static_cast<float>(call.attrs.real("scale"));
  return problem;
}

int64_t thread_bytes(const KernelCall& call, const Problem& problem, bool backward) {
  const Kernels& kernels = *state_of(call).kernels;
  return backward ? kernels.backward_bytes(problem) : kernels.forward_bytes(problem);
}

int64_t forward_scratch_bytes(const KernelCall& call) {
  return state_of(call).num_threads * thread_bytes(call, bind(call, false), false);
}

int64_t backward_scratch_bytes(const KernelCall& call) {
  const Problem problem = bind(call, true);
  const int64_t pieces = problem.num_pieces();
  const int64_t dq_pieces = pieces == 1 ? 0 : problem.dq_piece_offset(pieces, 0, 0);
  return state_of(call).num_threads * thread_bytes(call, problem, true) +
         dq_pieces * static_cast<int64_t>(sizeof(float));
}

void run_forward(const KernelCall& call) {
  const Problem problem = bind(call, false);
  const ChosenKernels state = state_of(call);
  const int64_t bytes = thread_bytes(call, problem, false);
  const int64_t groups = problem.num_groups(), heads = problem.num_sequences * problem.heads;
  const int num_threads = std::min(state.num_threads, omp_get_max_threads());
  // Dynamic, because units differ in length. As many heads at a time as there are threads, so that
  // their keys stay in the caches; of those the longest units, the last queries, first.
  const int64_t at_once = std::min<int64_t>(num_threads, heads);
#pragma omp parallel num_threads(num_threads)
  {
    auto* scratch = static_cast<std::byte*>(call.scratch) + omp_get_thread_num() * bytes;
    state.kernels->begin_forward(problem, scratch);
#pragma omp for schedule(dynamic)
    for (int64_t unit = 0; unit < groups * heads; ++unit) {
      const int64_t first = unit / (at_once * groups) * at_once;
      const int64_t width = std::min(at_once, heads - first), in_width = unit - first * groups;
      const int64_t head = first + in_width % width, group = groups - 1 - in_width / width;
      state.kernels->forward(problem, head / problem.heads, head % problem.heads, group, scratch);
    }
  }
}

void run_backward(const KernelCall& call) {
  const Problem problem = bind(call, true);
  const ChosenKernels state = state_of(call);
  const int64_t bytes = thread_bytes(call, problem, true);
  const int64_t pieces = problem.num_pieces();
  const int64_t kv_heads = problem.num_sequences * problem.kv_heads;
  auto* scratch = static_cast<std::byte*>(call.scratch);
  auto* dq_pieces =
      pieces == 1 ? nullptr : reinterpret_cast<float*>(scratch + state.num_threads * bytes);
  const int num_threads = std::min(state.num_threads, omp_get_max_threads());
  // The longest units, the first keys, go first.
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
  for (int64_t unit = 0; unit < pieces * kv_heads; ++unit) {
    const int64_t head = unit % kv_heads;
    state.kernels->backward(problem, head / problem.kv_heads, head % problem.kv_heads,
                            unit / kv_heads, scratch + omp_get_thread_num() * bytes, dq_pieces);
  }
  if (pieces == 1) return;
  const int64_t blocks = problem.num_blocks();
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t unit = 0; unit < problem.num_sequences * problem.heads * blocks; ++unit) {
    const int64_t head = unit / blocks;
    state.kernels->sum_dq(problem, head / problem.heads, head % problem.heads, unit % blocks,
                          dq_pieces);
  }
}

}  // namespace

Range visible_keys(const Problem& problem, int64_t sequence, Range queries) {
  const int32_t* start = problem.start + sequence * problem.sequence_length;
  Range keys;
  keys.begin = std::clamp<int64_t>(start[queries.begin], 0, queries.begin);
  keys.end = queries.end;
  if (!problem.causal) {
    keys.end = std::upper_bound(start + queries.end - 1, start + problem.sequence_length,
                                start[queries.end - 1]) -
               start;
  }
  return keys;
}

bool all_visible(const Problem& problem, int64_t sequence, Range queries, Range keys) {
  const int32_t* start = problem.start + sequence * problem.sequence_length;
  const int64_t first = std::min(queries.begin, keys.begin);
  const int64_t last = std::max(queries.end, keys.end) - 1;
  return start[first] == start[last] && (!problem.causal || keys.end <= queries.begin + 1);
}

}  // namespace attention_cpu

void add_attention_cpu_kernels(KernelTable& table) {
  table["attention"] = {.run = attention_cpu::run_forward,
                        .scratch_bytes = attention_cpu::forward_scratch_bytes,
                        .prepare = attention_cpu::prepare};
  table["attention_backward"] = {.run = attention_cpu::run_backward,
                                 .scratch_bytes = attention_cpu::backward_scratch_bytes,
                                 .prepare = attention_cpu::prepare};
}

}  // namespace skein
