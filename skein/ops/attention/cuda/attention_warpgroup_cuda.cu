// Forward on Hopper. The last warpgroup of a thread block copies q, and block after block of k and
// v, to shared memory; each other one has 64 queries of a head, and its scores, weights and sums in
// registers. head_dim is padded to 64 or 128 with zeros.
//
// In each turn the tensor cores get the scores of one block and the sums with the weights of the
// block before, so that they work while the softmax of the scores is computed. Warpgroups take
// turns, so that they have products to do while others are at their softmax.
//
// Source  Shah et al., "FlashAttention-3", arXiv:2407.08608
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/barrier_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/running_softmax_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_device_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_panels_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)
using warpgroup::accumulate, warpgroup::load_panels, warpgroup::multiply_rows, warpgroup::Panels,
    warpgroup::publish_copies, warpgroup::round_pairs, warpgroup::store_row;

// How work is cut for a head_dim of up to kDims.
template <int kDims>
struct Cut {
  static constexpr int kConsumers = kDims == 64 ? 3 : 2;  // warpgroups
  static constexpr int kQueries = 64 * kConsumers;
  static constexpr int kKeys = 128;  // of a turn
  static constexpr int kStages = 3;  // blocks of k, and of v, in shared memory
  static constexpr int kThreads = 128 * (kConsumers + 1);
  static constexpr int kConsumerRegisters = kDims == 64 ? 160 : 224;
  static constexpr int kProducerRegisters = kDims == 64 ? 32 : 56;
};

template <int kDims>
struct Memory {
  using Cut = attention_cuda::Cut<kDims>;
  using Keys = Panels<Cut::kKeys, kDims>;

  Panels<Cut::kQueries, kDims> q;
  Keys k[Cut::kStages], v[Cut::kStages];
  // Whether a block of k, and of v, has come, and whether all have used it.
  Barrier k_came[Cut::kStages], v_came[Cut::kStages], k_used[Cut::kStages], v_used[Cut::kStages];
  Barrier turn[Cut::kConsumers];  // of each warpgroup: the one before it arrives

  __device__ void init_barriers() {
    for (int stage = 0; stage < Cut::kStages; ++stage) {
      k_came[stage].init(4);
      v_came[stage].init(4);
      k_used[stage].init(4 * Cut::kConsumers);
      v_used[stage].init(4 * Cut::kConsumers);
    }
    for (Barrier& barrier : turn) barrier.init(4);
  }
};

// Where a block of k or v lies, and how many lay there before.
struct RingSlot {
  int stage = 0, round = 0;

  template <int stages>
  __device__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    ++round;
  }
};

// What a thread block computes: queries of a head, with the keys of blocks [begin, end).
struct Tile {
  int sequence, head;
  Range queries;
  int begin, end;
};

template <int n, int kDims>
__device__ void produce(const Problem& problem, const Tile& tile, Memory<kDims>& memory) {
  using Cut = attention_cuda::Cut<kDims>;
  const Range queries = tile.queries;
  load_panels<n, 128>({problem.q, problem.query_row(tile.sequence, queries.begin),
                       int64_t{tile.head} * problem.head_dim, queries.end - queries.begin},
                      problem.head_dim, memory.q);
  const auto load = [&](const Rows& rows, int block, typename Memory<kDims>::Keys& to) {
    const int first = block * Cut::kKeys;
    load_panels<n, 128>({rows, problem.key_row(tile.sequence, first),
                         int64_t{tile.head / problem.group_size()} * problem.head_dim,
                         problem.sequence_length - first},
                        problem.head_dim, to);
    commit_copies();
  };
  // While one comes, the one before is waited for.
  RingSlot place, before;
  for (int block = tile.begin; block < tile.end; ++block) {
    if (place.round > 0) memory.k_used[place.stage].wait(place.round - 1);
    load(problem.k, block, memory.k[place.stage]);
    if (block > tile.begin) {
      publish_copies<1>();
      memory.v_came[before.stage].arrive();
    }
    if (place.round > 0) memory.v_used[place.stage].wait(place.round - 1);
    load(problem.v, block, memory.v[place.stage]);
    publish_copies<1>();
    memory.k_came[place.stage].arrive();
    before = place;
    place.template advance<Cut::kStages>();
  }
  publish_copies<0>();
  memory.v_came[before.stage].arrive();
}

template <int n, int kDims>
__device__ void consume(const Problem& problem, const Tile& tile, int warpgroup,
                        Memory<kDims>& memory) {
  using Cut = attention_cuda::Cut<kDims>;
  constexpr int kKeys = Cut::kKeys;
  const int32_t* const starts = problem.starts_of(tile.sequence);
  const int first_row = warpgroup * 64;
  // Of the lane's rows; those beyond the last query are not stored.
  const auto query_of = [&](int half) {
    return tile.queries.begin + first_row + warpgroup::row_of_lane() + half * 8;
  };
  Range visible[kRows];
#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    const int query = query_of(half), last = tile.queries.end - 1;
    visible[half] = visible_keys(problem, starts, query < last ? query : last);
  }

  RunningSoftmax softmax{problem.scale * kLog2E};
  float scores[kKeys / 2], sums[kDims / 2], shrink[kRows];
  uint32_t weights[kKeys / 4];
#pragma unroll
  for (float& sum : sums) sum = 0;
  const auto begin_scores = [&](int block, RingSlot place) {
    memory.k_came[place.stage].wait(place.round);
    memory.turn[warpgroup].wait(block - tile.begin);
    warpgroup::fence();
    multiply_rows(scores, memory.q, first_row, memory.k[place.stage]);
  };
  const auto begin_sums = [&](RingSlot place) {
    memory.v_came[place.stage].wait(place.round);
    warpgroup::fence();
    accumulate(sums, weights, memory.v[place.stage]);
  };
  const auto give_turn = [&](int to) { memory.turn[to % Cut::kConsumers].arrive(); };
  const auto weigh = [&](int block) {
    const int first = block * kKeys;
    const bool all = visible[1].begin <= first && first + kKeys <= visible[0].end;
    if (!__all_sync(kAllLanes, all)) hide(visible, first, scores);
    softmax.advance(scores, shrink);
  };

  RingSlot place, before;
  if (warpgroup + 1 == Cut::kConsumers) give_turn(0);
  begin_scores(tile.begin, place);
  give_turn(warpgroup + 1);
  warpgroup::wait();
  memory.k_used[place.stage].arrive();
  weigh(tile.begin);
  round_pairs(scores, weights);
  for (int block = tile.begin + 1; block < tile.end; ++block) {
    before = place;
    place.template advance<Cut::kStages>();
    begin_scores(block, place);
    begin_sums(before);
    give_turn(warpgroup + 1);
    warpgroup::wait<1>();
    memory.k_used[place.stage].arrive();
    weigh(block);
    warpgroup::compute_before_wait(fminf(softmax.total[0], softmax.total[1]));
    warpgroup::wait();
    memory.v_used[before.stage].arrive();
#pragma unroll
    for (int i = 0; i < kDims / 2; ++i) sums[i] *= shrink[i / 2 % kRows];
    round_pairs(scores, weights);
  }
  begin_sums(place);
  warpgroup::wait();

#pragma unroll
  for (int half = 0; half < kRows; ++half) {
    const int query = query_of(half);
    const float total = softmax.sum(half), lse = softmax.lse(half);
    if (query >= tile.queries.end || problem.is_elsewhere(tile.sequence, query)) continue;
    const int64_t row = problem.query_row(tile.sequence, query);
    if (threadIdx.x % 4 == 0) *row_at<float>(problem.lse, row, tile.head) = lse;
    store_row<n>(sums, half, 1 / total, problem.o, row, int64_t{tile.head} * problem.head_dim,
                 problem.head_dim);
  }
}

// Which blocks of queries go first: of some heads, before those of others, so that the L2 cache
// holds the keys and values that are read at a time; of these the last ones, which have the most
// keys.
__device__ inline Unit unit_of_block(const Problem& problem, int num_blocks) {
  constexpr int kHeadsAtOnce = 8;
  const int block = static_cast<int>(blockIdx.x), num_heads = problem.num_sequences * problem.heads;
  const int first = block / (kHeadsAtOnce * num_blocks) * kHeadsAtOnce;
  const int width = num_heads - first < kHeadsAtOnce ? num_heads - first : kHeadsAtOnce;
  const int rest = block - first * num_blocks, head = first + rest % width;
  return {head / problem.heads, head % problem.heads, num_blocks - 1 - rest / width};
}

template <int n, int kDims>
__global__ void __launch_bounds__(Cut<kDims>::kThreads, 1) attend(Problem problem) {
  wait_for_previous_kernel();
  using Cut = attention_cuda::Cut<kDims>;
  const auto [sequence, head, block] =
      unit_of_block(problem, problem.num_query_blocks(Cut::kQueries));
  const Range queries = problem.query_range(block, Cut::kQueries);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* const starts = problem.starts_of(sequence);
  const int first_key = visible_keys(problem, starts, own.begin).begin;
  const int last_key = visible_keys(problem, starts, own.end - 1).end - 1;
  const Tile tile = {sequence, head, queries, first_key / Cut::kKeys, last_key / Cut::kKeys + 1};

  auto& memory = dynamic_memory<Memory<kDims>>();
  if (threadIdx.x == 0) memory.init_barriers();
  __syncthreads();
  const int warpgroup = warpgroup::warpgroup_of_thread();
  if (warpgroup == Cut::kConsumers) {
    warpgroup::keep_registers<Cut::kProducerRegisters>();
    produce<n>(problem, tile, memory);
  } else {
    warpgroup::take_registers<Cut::kConsumerRegisters>();
    consume<n>(problem, tile, warpgroup, memory);
  }
}

template <int n, int kDims>
void launch_forward(const KernelCall& call, const Problem& problem) {
  using Cut = attention_cuda::Cut<kDims>;
  static_assert(sizeof(Memory<kDims>) <= 227 << 10);
  const int64_t heads = int64_t{problem.num_sequences} * problem.heads;
  launch_with_memory(call, blocks_for(heads * problem.num_query_blocks(Cut::kQueries), 1),
                     Cut::kThreads, sizeof(Memory<kDims>), attend<n, kDims>, problem);
}

}  // namespace

bool has_warpgroups() {
  static const bool result = warpgroup::are_there();  // GPUs of a process are of one kind
  return result;
}

bool plans_for_warpgroups() {
#ifndef SKEIN_CUDA_EMULATED
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return has_warpgroups();
  static_cast<void>(cudaGetLastError());
#endif
  return true;
}

bool is_for_warpgroups(DType dtype, const Problem& problem) {
  if (dtype != DType::kBF16 || problem.head_dim > kMaxTensorCoreHeadDim) return false;
  if (wanted_way() == Way::kWarpgroups) return true;
#ifdef SKEIN_CUDA_EMULATED
  return false;  // they take the emulation long
#else
  return wanted_way() != Way::kPlain && has_warpgroups();
#endif
}

void run_warpgroup_forward(const KernelCall& call, const Problem& problem) {
  warpgroup::check_device();
  tensor_core::with_constants(
      problem, [&](auto pack, auto dims) { launch_forward<pack(), dims()>(call, problem); });
}

}  // namespace skein::attention_cuda
