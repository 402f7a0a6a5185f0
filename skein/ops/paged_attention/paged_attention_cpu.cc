// Work is divided into units: up to kUnitRows rows of neighbouring tokens of one sequence, with the
// query heads of one key-value head. What a unit computes of a row does not depend on its others.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/paged_attention/paged_attention_cpu.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "skein/base/machine/prefetch.h"
#include "skein/base/text/units.h"
#include "skein/ir/kernel.h"
#include "skein/ops/paged_attention/paged_attention_problem.h"
#include "skein/ops/simd/simd-inl.h"
// clang-format off
#include "skein/ops/paged_attention/paged_attention_tile-inl.h"
// clang-format on

#ifndef SKEIN_PAGED_ATTENTION_UNITS
#define SKEIN_PAGED_ATTENTION_UNITS
namespace skein::paged {

constexpr int64_t kUnitRows = 64;
constexpr int64_t kMostTileRows = 8;

// Tokens [begin, end) of one sequence, whose contexts increase.
struct Unit {
  int64_t begin, end, kv_head;
  const int64_t* contexts;  // of all tokens
};

inline int64_t padded_dim(const Problem& problem) { return round_up(problem.head_dim, 16); }
inline int64_t unit_tokens(const Problem& problem) {
  return std::max<int64_t>(1, kUnitRows / problem.group_size());
}
inline int64_t unit_rows(const Problem& problem) {
  return unit_tokens(problem) * problem.group_size();
}

// Floats of each part of a thread's memory, in order.
struct ThreadFloats {
  explicit ThreadFloats(const Problem& problem)
      : matrix(unit_rows(problem) * padded_dim(problem)),
        rows(round_up(unit_rows(problem) * (kSums + 4), 16)),
        block(kBlock * padded_dim(problem)),
        scores(kMostTileRows * kBlock),
        sums(kMostTileRows * padded_dim(problem)) {}
  int64_t matrix, rows, block, scores, sums;
  int64_t total() const { return 2 * matrix + rows + 2 * block + scores + sums; }
};

}  // namespace skein::paged
#endif

HWY_BEFORE_NAMESPACE();
namespace skein::paged::HWY_NAMESPACE {
namespace {

struct ThreadMemory {
  ThreadMemory(const Problem& problem, float* base) {
    const ThreadFloats floats(problem);
    const auto take = [&](int64_t count) { return std::exchange(base, base + count); };
    q = take(floats.matrix);
    out = take(floats.matrix);
    rows = reinterpret_cast<Row*>(take(floats.rows));
    keys = take(floats.block);
    values = take(floats.block);
    tile.scores = take(floats.scores);
    tile.sums = take(floats.sums);
  }
  float *q, *out;
  Row* rows;
  float *keys, *values;  // a block, widened: [head_dim][kBlock], [kBlock][padded_dim]
  TileMemory tile;
};
static_assert(sizeof(Row) <= (kSums + 4) * sizeof(float) && kTileRows <= kMostTileRows);

template <typename T>
void widen(const T* from, int64_t count, float* to) {
  const F32 d;
  for (int64_t i = 0; i < count; i += kLanes) {
    hn::StoreU(sm::load(d, from + i, std::min(kLanes, count - i)), d, to + i);
  }
}

template <typename T>
Block<T> block_of(const Problem& problem, const int32_t* pages, int64_t kv_head, int64_t begin,
                  int64_t context) {
  const int64_t page_size = problem.page_size, head_dim = problem.head_dim;
  Block<T> block{.keys = {{}, {}, page_size},
                 .values = {{}, {}, head_dim},
                 .begin = begin,
                 .count = std::min(kBlock, context - begin)};
  const int64_t head = kv_head * head_dim * page_size, last = context - 1;
  const auto locate = [&](int64_t first, const T*& keys, const T*& values) {
    const int64_t page = pages[first / page_size], place = first % page_size;
    keys = problem.keys.row<const T>(page) + head + place;
    values = problem.values.row<const T>(page) + head + place * head_dim;
  };
  for (int64_t span = 0; span < kSpans; ++span) {
    // A tile may read keys behind the last one, whose scores nobody looks at.
    const int64_t first = std::min(begin + span * kSpan, last - last % kSpan);
    locate(first, block.keys.at[span], block.values.at[span]);
    locate(first + kBlock <= last ? first + kBlock : first, block.keys.next[span],
           block.values.next[span]);
  }
  return block;
}

// The same block in fp32, which many rows read faster.
template <typename T>
Block<float> widened(const Problem& problem, const Block<T>& block, const ThreadMemory& memory) {
  const int64_t padded = padded_dim(problem);
  Block<float> wide{.keys = {{}, {}, kBlock},
                    .values = {{}, {}, padded},
                    .begin = block.begin,
                    .count = block.count};
  for (int64_t span = 0; span < kSpans; ++span) {
    float* keys = memory.keys + span * kSpan;
    float* values = memory.values + span * kSpan * padded;
    const bool is_there = span * kSpan < block.count;
    wide.keys.at[span] = wide.keys.next[span] = is_there ? keys : memory.keys;
    wide.values.at[span] = wide.values.next[span] = values;
    if (!is_there) continue;
    for (int64_t dim = 0; dim < problem.head_dim; ++dim) {
      widen(block.keys.at[span] + dim * block.keys.stride, kSpan, keys + dim * kBlock);
    }
    for (int64_t i = 0; i < std::min(kSpan, block.count - span * kSpan); ++i) {
      widen(block.values.at[span] + i * block.values.stride, problem.head_dim, values + i * padded);
    }
  }
  return wide;
}

template <typename T>
void finish_row(const Row& row, const float* out, int64_t head_dim, T* to) {
  const F32 d;
  float sums[kSums];
  std::copy_n(row.sums, kSums, sums);
  for (int64_t half = kSums / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  const VF32 inverse = hn::Set(d, 1.0f / sums[0]);
  for (int64_t dim = 0; dim < head_dim; dim += kLanes) {
    sm::store(hn::Mul(hn::LoadU(d, out + dim), inverse), d, to + dim,
              std::min(kLanes, head_dim - dim));
  }
}

template <typename T>
void attend_as(const Problem& problem, const Unit& unit, void* scratch) {
  const ThreadMemory memory(problem, static_cast<float*>(scratch));
  const int64_t group = problem.group_size(), head_dim = problem.head_dim;
  const int64_t padded = padded_dim(problem), num_rows = (unit.end - unit.begin) * group;
  const auto offset_of = [&](int64_t row) {
    return (unit.kv_head * group + row % group) * head_dim;
  };
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t token = unit.begin + row / group;
    widen(problem.q.row<const T>(token) + offset_of(row), head_dim, memory.q + row * padded);
    memory.rows[row] = {.context = unit.contexts[token], .largest = -INFINITY, .sums = {}};
  }
  std::fill_n(memory.out, num_rows * padded, 0.0f);
  const int32_t* pages = problem.pages_of(problem.sequence[unit.begin]);
  const int64_t context = unit.contexts[unit.end - 1];
  // Vectors of values end with a head only if its dims fill them.
  const bool is_direct = head_dim == padded && (sizeof(T) == sizeof(float) || num_rows <= 8);
  for (int64_t begin = 0, first = 0; begin < context; begin += kBlock) {
    while (memory.rows[first].context <= begin) ++first;
    const Block<T> block = block_of<T>(problem, pages, unit.kv_head, begin, context);
    const auto attend = [&](const auto& any) {
      attend_block(num_rows - first, any, memory.q + first * padded, padded, head_dim,
                   problem.scale, memory.tile, memory.rows + first, memory.out + first * padded);
    };
    is_direct ? attend(block) : attend(widened(problem, block, memory));
  }
  for (int64_t row = 0; row < num_rows; ++row) {
    finish_row(memory.rows[row], memory.out + row * padded, head_dim,
               problem.o.row<T>(unit.begin + row / group) + offset_of(row));
  }
}

void attend(const Problem& problem, DType dtype, const Unit& unit, void* scratch) {
  dtype == DType::kBF16 ? attend_as<bfloat16>(problem, unit, scratch)
                        : attend_as<float>(problem, unit, scratch);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::paged::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace paged {
namespace {

HWY_EXPORT(attend);

// Positions that a token attends to; 0: it is padding.
int64_t context_of(const Problem& problem, int64_t token) {
  if (!problem.is_in_table(token)) return 0;
  const int32_t* pages = problem.pages_of(problem.sequence[token]);
  const int64_t last = problem.position[token];
  bool are_pages = true;
  for (int64_t i = 0; i <= last / problem.page_size; ++i) are_pages &= problem.is_page(pages[i]);
  return are_pages ? last + 1 : 0;
}

template <typename T>
void store_token(const Problem& problem, int64_t token, int64_t context) {
  const int64_t head_dim = problem.head_dim, page_size = problem.page_size;
  if (context == 0) {
    std::fill_n(problem.o.row<T>(token), problem.heads * head_dim, T(0.0f));
    return;
  }
  const int64_t last = context - 1, place = last % page_size;
  const int64_t page = problem.pages_of(problem.sequence[token])[last / page_size];
  const T *k = problem.k.row<const T>(token), *v = problem.v.row<const T>(token);
  T *keys = problem.keys.row<T>(page) + place, *values = problem.values.row<T>(page);
  for (int64_t i = 0; i < problem.kv_heads * head_dim; ++i) keys[i * page_size] = k[i];
  for (int64_t head = 0; head < problem.kv_heads; ++head) {
    std::copy_n(v + head * head_dim, head_dim, values + (head * page_size + place) * head_dim);
  }
}

// The first tokens of units, and behind them the number of tokens; a unit may begin with padding.
// Returns the number of units.
int64_t divide(const Problem& problem, const int64_t* contexts, int64_t* begins) {
  const int64_t most = unit_tokens(problem);
  int64_t count = 0;
  for (int64_t token = 0; token < problem.tokens; ++token) {
    const bool continues = count > 0 && token - begins[count - 1] < most &&
                           contexts[token - 1] > 0 && contexts[token] > contexts[token - 1] &&
                           problem.sequence[token] == problem.sequence[token - 1];
    if (!continues) begins[count++] = token;
  }
  begins[count] = problem.tokens;
  return count;
}

struct State {
  int num_threads;  // that scratch memory is reserved for
};

State state_of(const KernelCall& call) {
  if (call.state != nullptr) return *static_cast<const State*>(call.state.get());
  return {omp_get_max_threads()};
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  return std::make_shared<State>(state_of(call));
}

// Contexts and the units' first tokens, before the threads' memory.
int64_t table_bytes(const Problem& problem) {
  return round_up((2 * problem.tokens + 1) * static_cast<int64_t>(sizeof(int64_t)), 64);
}
int64_t thread_bytes(const Problem& problem) {
  return ThreadFloats(problem).total() * static_cast<int64_t>(sizeof(float));
}

int64_t scratch_bytes(const KernelCall& call) {
  const Problem problem = bind(call);
  return table_bytes(problem) + state_of(call).num_threads * thread_bytes(problem);
}

void run(const KernelCall& call) {
  const Problem problem = bind(call);
  const DType dtype = call.outputs[0].dtype;
  const int num_threads = std::min(state_of(call).num_threads, omp_get_max_threads());
  auto* contexts = static_cast<int64_t*>(call.scratch);
  int64_t* begins = contexts + problem.tokens;
  auto* threads = static_cast<std::byte*>(call.scratch) + table_bytes(problem);
  const int64_t bytes = thread_bytes(problem);
#pragma omp parallel for schedule(static) num_threads(num_threads)
  for (int64_t token = 0; token < problem.tokens; ++token) {
    contexts[token] = context_of(problem, token);
    dtype == DType::kBF16 ? store_token<bfloat16>(problem, token, contexts[token])
                          : store_token<float>(problem, token, contexts[token]);
  }
  const int64_t groups = divide(problem, contexts, begins);
  // The last groups of a prompt, which have the longest contexts, go first.
#pragma omp parallel for schedule(dynamic) num_threads(num_threads)
  for (int64_t i = 0; i < groups * problem.kv_heads; ++i) {
    const int64_t group = groups - 1 - i / problem.kv_heads;
    const Unit unit{begins[group], begins[group + 1], i % problem.kv_heads, contexts};
    if (contexts[unit.begin] == 0) continue;
    HWY_DYNAMIC_DISPATCH(attend)
    (problem, dtype, unit, threads + omp_get_thread_num() * bytes);
  }
}

}  // namespace
}  // namespace paged

void add_paged_attention_cpu_kernels(KernelTable& table) {
  table["paged_attention"] = {
      .run = paged::run, .scratch_bytes = paged::scratch_bytes, .prepare = paged::prepare};
}

}  // namespace skein
#endif  // HWY_ONCE
