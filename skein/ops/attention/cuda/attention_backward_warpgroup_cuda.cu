// Backward on Hopper. A thread block is two warpgroups and has a tile of 128 rows of a head, 64 a
// warpgroup; it walks over blocks of others. For dq the rows are queries and the others keys, for
// dk and dv the reverse. Either way
//   scores    rows of q or k times the others' k or q; exp makes weights (p) of them
//   products  rows of do or v times the others' v or do
// have the tile's rows as theirs, and what is made of them in registers (p, ds) is the left operand
// of the sums. The tile stays in shared memory; blocks pass through it, of which one is in use, the
// next is complete and others come. While scores become weights, products are multiplied; while
// these become ds, the next scores (dq) or dv are. Both warpgroups copy each block, but neither
// waits for the other unless that is a turn behind: so one multiplies while the other weighs.
//
// No product is pending where a turn of the walk ends: ptxas 13.0 would wait for each product
// alone.
//
// Source  Dao, "FlashAttention-2", arXiv:2307.08691
//         Shah et al., "FlashAttention-3", arXiv:2407.08608
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/attention/cuda/barrier_cuda.h"
#include "skein/ops/attention/cuda/own_positions_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_device_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_panels_cuda.h"
#include "skein/ops/attention/cuda/warpgroup_scores_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/shared_memory_cuda.h"

namespace skein::attention_cuda {
namespace {

using namespace warpgroup;  // NOLINT(google-build-using-namespace)
using cuda::blocks_for, cuda::commit_copies, cuda::copy_word, cuda::dynamic_memory;

constexpr int kTile = 2 * kBlock;
constexpr int kThreads = 256;
constexpr int kStages = 4;

// Of a block. Heads of up to 64 leave registers for the scores of 128: half as many turns, and
// products that read their left operand half as often.
template <int kDims>
constexpr int kOthers = kDims == 64 ? 128 : 64;
template <int kDims>
constexpr int kScores = kOthers<kDims> / 2;  // of a lane: 64 rows by the others, by 128 threads

// ---- what lies in shared memory

// Adjacent positions. Those beyond the end have zeros, and a start that no other has.
template <int rows, int kDims>
struct Operands {
  Panels<rows, kDims> scored, multiplied;  // q and do, or k and v
  int first;                               // position
  int32_t starts[rows];
  alignas(16) float lse[rows], deltas[rows];  // of queries, where they are the others
};
constexpr int kNoRow = -1, kNoOther = -2;
template <int kDims>
using Others = Operands<kOthers<kDims>, kDims>;

// Blocks of a span's queries: how many, and where they lie.
struct SpanBlocks {
  int count = 0;
  Range positions = {};
  int64_t first_row = 0;
};

template <int kDims>
struct Memory {
  Operands<kTile, kDims> tile;
  Others<kDims> stages[kStages];
  SpanBlocks spans[2];
  Barrier came[kStages], used[kStages];
};

// Where the rows of a head come from.
struct Source {
  const Rows &scored, &multiplied;
  const int32_t* starts;
  int64_t first_row, first_col;
  Range positions;
};
// Complete after publish_copies() and a barrier.
template <int n, int rows, int kDims>
__device__ void load_operands(const Source& from, int head_dim, int no_start,
                              Operands<rows, kDims>& to) {
  const int num_rows = from.positions.end - from.positions.begin;
  load_panels<n, kThreads>({from.scored, from.first_row, from.first_col, num_rows}, head_dim,
                           to.scored);
  load_panels<n, kThreads>({from.multiplied, from.first_row, from.first_col, num_rows}, head_dim,
                           to.multiplied);
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) to.first = from.positions.begin;
  if (i < num_rows) {
    copy_word(&to.starts[i], from.starts + from.positions.begin + i);
  } else if (i < rows) {
    to.starts[i] = no_start;
  }
}

// Block n of the walk is in stage n % kStages, and used in turn n. In a turn a warp tells that its
// copies of the block after the next have come, waits for all of the next one's, and starts to copy
// one in place of the block before, once both warpgroups have used that.
constexpr int kLoadedAhead = kStages - 1;
template <int kDims>
struct Turns {
  Memory<kDims>& memory;

  // Thread 0, before the others use the barriers.
  __device__ static void init(Memory<kDims>& memory) {
    for (Barrier& barrier : memory.came) barrier.init(kThreads / 32);
    for (Barrier& barrier : memory.used) barrier.init(kThreads / 32);
  }
  __device__ Others<kDims>& stage(int turn) const { return memory.stages[place(turn)]; }
  // The copies of the tile and of kLoadedAhead blocks have begun; until those of the first came.
  __device__ void begin() const {
    publish_copies<kLoadedAhead - 2>();
    memory.came[0].arrive();
    memory.came[1].arrive();
    memory.came[0].wait(0);
  }
  __device__ void wait_for_next(int turn) const {
    publish_copies<0>();
    memory.came[place(turn + 2)].arrive();
    wait_for(memory.came, turn + 1);
  }
  __device__ void wait_for_place(int turn) const {
    if (turn > 0) wait_for(memory.used, turn - 1);
  }
  __device__ void end(int turn) const { memory.used[place(turn)].arrive(); }

 private:
  __device__ static unsigned place(int turn) { return static_cast<unsigned>(turn) % kStages; }
  __device__ static void wait_for(Barrier (&barriers)[kStages], int turn) {
    barriers[place(turn)].wait(turn / kStages);
  }
};

// The end of blocks, or the first of them of which all positions are of later documents than
// `last`. Every lane of a warp calls.
template <typename RangeOf>
__device__ int end_of_documents(const int32_t* starts, Range blocks, int last,
                                const RangeOf& range_of) {
  for (int first = blocks.begin; first < blocks.end; first += warpSize) {
    const int block = first + static_cast<int>(threadIdx.x) % warpSize;
    const bool past = block < blocks.end && past_documents(starts, range_of(block).begin, last);
    const unsigned lanes = __ballot_sync(cuda::kAllLanes, past);
    if (lanes != 0) return first + __ffs(static_cast<int>(lanes)) - 1;
  }
  return blocks.end;
}

// ---- dq

template <int n, int kDims>
__device__ void sum_dq(const Problem& problem, Unit unit) {
  auto& memory = dynamic_memory<Memory<kDims>>();
  const auto& tile = memory.tile;
  const auto [sequence, head, place] = unit;
  // The last queries, which have the most keys, go first.
  const int last_tile = problem.num_query_blocks(kTile) - 1;
  const Range queries = problem.query_range(last_tile - place, kTile);
  const Range own = own_positions(problem, sequence, queries);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t kv_col = int64_t{head / problem.group_size()} * problem.head_dim;
  const int64_t first_col = int64_t{head} * problem.head_dim;
  const int64_t tile_row = problem.query_row(sequence, queries.begin);
  Range blocks = key_blocks_of(problem, starts, own, kOthers<kDims>);
  blocks.end = end_of_documents(starts, blocks, own.end - 1, [&](int block) {
    return problem.key_range(block, kOthers<kDims>);
  });

  const Turns<kDims> turns = {memory};
  int coming = blocks.begin;
  const auto load_next = [&](int turn) {
    if (coming < blocks.end) {
      turns.wait_for_place(turn);
      const Range keys = problem.key_range(coming, kOthers<kDims>);
      const int64_t row = problem.key_row(sequence, keys.begin);
      load_operands<n>({problem.k, problem.v, starts, row, kv_col, keys}, problem.head_dim,
                       kNoOther, turns.stage(turn + kLoadedAhead));
    }
    ++coming;
    commit_copies();
  };
  load_operands<n>({problem.q, problem.grad, starts, tile_row, first_col, queries},
                   problem.head_dim, kNoRow, memory.tile);
  for (int turn = -kLoadedAhead; turn < 0; ++turn) load_next(turn);
  const int first_row = warpgroup_of_thread() * kBlock;
  OfRows lse = {}, deltas = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + row_of_lane() + half * 8;
    if (queries.begin + row >= queries.end) continue;
    lse.at[half] = *row_at<const float>(problem.lse, tile_row + row, head);
    deltas.at[half] = problem.delta[(tile_row + row) * problem.heads + head];
  }
  turns.begin();

  float scores[kScores<kDims>], products[kScores<kDims>], sums[kDims / 2];
  fill_zero(sums);
  fence();
  multiply_rows(scores, tile.scored, first_row, memory.stages[0].scored);
  wait();
  for (int turn = 0; turn < blocks.end - blocks.begin; ++turn) {
    const auto &here = turns.stage(turn), &next = turns.stage(turn + 1);
    const Mask<true, kOthers<kDims>> mask = {tile.starts + first_row, here.starts,
                                             queries.begin + first_row, here.first, problem.causal};
    fence();
    multiply_rows(products, tile.multiplied, first_row, here.multiplied);
    const bool all = mask.shows_all();
    turns.wait_for_next(turn);
    float weights[kScores<kDims>];
    weigh(mask, all, problem.scale, lse, scores, weights);
    fence();
    multiply_rows(scores, tile.scored, first_row, next.scored);  // unused in the last turn
    if constexpr (kDims > 64) load_next(turn);
    wait<1>();
    differentiate(weights, deltas, products);
    uint32_t ds[kScores<kDims> / 2];
    round_pairs(products, ds);
    fence();
    accumulate(sums, ds, here.scored);
    if constexpr (kDims <= 64) load_next(turn);  // for registers
    wait();
    turns.end(turn);
  }
  const int first = queries.begin + first_row;
  store_sums<n>(
      sums, problem.scale, {problem.dq, tile_row + first_row, first_col, queries.end - first},
      problem.head_dim, [&](int row) { return !problem.is_elsewhere(sequence, first + row); });
}

// ---- dk and dv

// Of `size` queries each.
__device__ inline SpanBlocks span_blocks_of(const Problem& problem, const int32_t* starts,
                                            int sequence, int span, Range keys, int size) {
  Range blocks = query_blocks_of(problem, starts, span, keys, size);
  blocks.end = end_of_documents(starts, blocks, keys.end - 1,
                                [&](int block) { return problem.query_range(block, size); });
  if (blocks.begin >= blocks.end) return {};
  const Range positions = {problem.query_range(blocks.begin, size).begin,
                           problem.query_range(blocks.end - 1, size).end};
  return {blocks.end - blocks.begin, positions, problem.query_row(sequence, positions.begin)};
}

template <int n, int kDims>
__device__ void sum_dk_dv(const Problem& problem, Unit unit) {
  auto& memory = dynamic_memory<Memory<kDims>>();
  const auto& tile = memory.tile;
  // The first keys, which have the most queries, go first.
  const auto [sequence, kv_head, place] = unit;
  const int tile_begin = place * kTile, sequence_end = problem.sequence_length;
  const Range keys = {tile_begin,
                      tile_begin + kTile < sequence_end ? tile_begin + kTile : sequence_end};
  const Range own = own_positions(problem, sequence, keys);
  if (own.begin >= own.end) return;
  const int32_t* starts = problem.starts_of(sequence);
  const int64_t first_col = int64_t{kv_head} * problem.head_dim;
  const int64_t tile_row = problem.key_row(sequence, keys.begin);
  int blocks_of_head = 0;
  for (int span = 0; span < problem.num_spans(); ++span) {
    const SpanBlocks blocks = span_blocks_of(problem, starts, sequence, span, own, kOthers<kDims>);
    if (threadIdx.x == 0) memory.spans[span] = blocks;
    blocks_of_head += blocks.count;
  }
  blocks_of_head = __shfl_sync(cuda::kAllLanes, blocks_of_head, 0);
  __syncthreads();

  const Turns<kDims> turns = {memory};
  // Heads one after another, of each both spans.
  int coming = 0, coming_head = kv_head * problem.group_size();
  int num_left = blocks_of_head * problem.group_size();
  const auto load = [&](Others<kDims>& to) {
    const int in_first = memory.spans[0].count, span = coming < in_first ? 0 : 1;
    const int ahead = (coming - span * in_first) * kOthers<kDims>;
    const Range all = memory.spans[span].positions;
    const int begin = all.begin + ahead;
    const Range queries = {begin,
                           begin + kOthers<kDims> < all.end ? begin + kOthers<kDims> : all.end};
    const int64_t row = memory.spans[span].first_row + ahead;
    const int64_t col = int64_t{coming_head} * problem.head_dim;
    load_operands<n>({problem.q, problem.grad, starts, row, col, queries}, problem.head_dim,
                     kNoOther, to);
    const int i = static_cast<int>(threadIdx.x);
    if (i < queries.end - queries.begin) {
      copy_word(&to.lse[i], row_at<const float>(problem.lse, row + i, coming_head));
      // Unsigned: the register of its sign would spill.
      copy_word(&to.deltas[i],
                problem.delta + (row + i) * static_cast<uint32_t>(problem.heads) + coming_head);
    } else if (i < kOthers<kDims>) {
      to.lse[i] = to.deltas[i] = 0;
    }
    if (++coming < blocks_of_head) return;
    coming = 0;
    ++coming_head;
  };
  // That many after the one in use.
  const auto load_next = [&](int turn, int ahead) {
    if (num_left > ahead) {
      turns.wait_for_place(turn);
      load(turns.stage(turn + kLoadedAhead));
    }
    commit_copies();
  };
  load_operands<n>({problem.k, problem.v, starts, tile_row, first_col, keys}, problem.head_dim,
                   kNoRow, memory.tile);
  for (int turn = -kLoadedAhead; turn < 0; ++turn) load_next(turn, turn + kLoadedAhead);
  turns.begin();

  const int first_row = warpgroup_of_thread() * kBlock;
  float scores[kScores<kDims>], products[kScores<kDims>], dk[kDims / 2], dv[kDims / 2];
  fill_zero(dk);
  fill_zero(dv);
  fence();
  multiply_rows(scores, tile.scored, first_row, memory.stages[0].scored);
  wait();
  for (int turn = 0; num_left > 0; --num_left, ++turn) {
    const auto &here = turns.stage(turn), &next = turns.stage(turn + 1);
    const Mask<false, kOthers<kDims>> mask = {tile.starts + first_row, here.starts,
                                              keys.begin + first_row, here.first, problem.causal};
    fence();
    multiply_rows(products, tile.multiplied, first_row, here.multiplied);
    const bool all = mask.shows_all();
    turns.wait_for_next(turn);
    weigh(mask, all, problem.scale, OfColumns{here.lse}, scores, scores);
    uint32_t p[kScores<kDims> / 2], ds[kScores<kDims> / 2];
    round_pairs(scores, p);
    fence();
    accumulate(dv, p, here.multiplied);
    wait<1>();
    differentiate(scores, OfColumns{here.deltas}, products);
    round_pairs(products, ds);
    fence();
    accumulate(dk, ds, here.scored);
    multiply_rows(scores, tile.scored, first_row, next.scored);  // unused in the last turn
    load_next(turn, kLoadedAhead);
    wait();
    turns.end(turn);
  }
  const int first = keys.begin + first_row;
  const auto store = [&](const float(&sums)[kDims / 2], float factor, const Rows& to) {
    store_sums<n>(sums, factor, {to, tile_row + first_row, first_col, keys.end - first},
                  problem.head_dim,
                  [&](int row) { return !problem.is_elsewhere(sequence, first + row); });
  };
  store(dk, problem.scale, problem.dk);
  store(dv, 1, problem.dv);
}

// ---- both

// dq and dk with dv are tiles of one grid: neither needs the other, and of few heads each alone
// would leave multiprocessors without work. Walks of keys, which go through each head of a group,
// are the longest, and go first; of each kind the longest do.
template <int n, int kDims>
__global__ void __launch_bounds__(kThreads, 1) sum_gradients(Problem problem, int tiles_of_keys) {
  cuda::wait_for_previous_kernel();
  if (threadIdx.x == 0) Turns<kDims>::init(dynamic_memory<Memory<kDims>>());
  __syncthreads();
  const int block = static_cast<int>(blockIdx.x);
  if (block < tiles_of_keys) {
    sum_dk_dv<n, kDims>(problem, unit_at(problem, problem.kv_heads, block));
  } else {
    sum_dq<n, kDims>(problem, unit_at(problem, problem.heads, block - tiles_of_keys));
  }
}

// ---- on the host

template <int n, int kDims>
void launch_backward(const KernelCall& call, const Problem& problem) {
  static_assert(sizeof(Memory<kDims>) <= 227 << 10);
  const int64_t of_keys = int64_t{problem.num_sequences} * problem.kv_heads *
                          blocks_for(problem.sequence_length, kTile);
  const int64_t of_queries =
      int64_t{problem.num_sequences} * problem.heads * problem.num_query_blocks(kTile);
  cuda::launch_with_memory(call, blocks_for(of_keys + of_queries, 1), kThreads,
                           sizeof(Memory<kDims>), sum_gradients<n, kDims>, problem,
                           static_cast<int>(of_keys));
}

}  // namespace

void run_warpgroup_backward(const KernelCall& call, const Problem& problem) {
  check_device();
  tensor_core::with_constants(
      problem, [&](auto pack, auto dims) { launch_backward<pack(), dims()>(call, problem); });
}

}  // namespace skein::attention_cuda
