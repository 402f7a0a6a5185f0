// The forward block kernel of attention; included like attention_tile-inl.h.
//
// Scores are [queries, keys]: probabilities are then the left panel of the next product, and its
// result lies as it is stored. Queries go strip by strip, so that what a strip works on stays in
// the L1 cache.
SKEIN_ATTENTION_ATTRIBUTES
namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
// The maximum of no scores: finite, so that a query that has seen no key yet does not produce a
// NaN.
constexpr float kNoMaximum = -1e30f;
// A query's sums are of 2^(score - offset). The offset follows its largest score only once that has
// grown by this much, since to follow it means to rescale what was summed.
constexpr float kMostLog2 = 8.0f;
#ifdef SKEIN_ATTENTION_UNIT
// One row of tiles: a tiles' unit that has had nothing for as long as a softmax of 32 queries takes
// begins some 350 ns late (bench/tiles_bench.cc).
constexpr int64_t kStripQueries = 16;
#else
constexpr int64_t kStripQueries = 32;
#endif
constexpr int64_t kColumnMultiple = kBlock / 2;  // two columns of tiles

constexpr int64_t words_of(int64_t elements) { return (elements + kPack - 1) / kPack; }

template <typename T>
const T* row_at(const View& view, int64_t row, int64_t col) {
  return view.as<const T>() + row * view.row_stride + col;
}

// The document starts of a block; past the end -1, which no position has.
inline void load_starts(const Problem& problem, int64_t sequence, Range block, int32_t* starts) {
  const int32_t* from = problem.start + sequence * problem.sequence_length + block.begin;
  std::fill(std::copy(from, from + (block.end - block.begin), starts), starts + kBlock, -1);
}

struct QueryState {
  Range queries;
  Range keys;
  uint32_t* q_rows;  // left panel [kBlock][padded_dim / kPack]
  float* out;        // [kBlock, padded_dim], not divided by the sums yet
  float* offset;     // [kBlock] that scores are relative to, without the scale
  float* limit;      // [kBlock]: a larger score moves the offset
  float* sums;       // [kBlock, kLanes]
  int32_t* starts;   // [kBlock]
  bool begun[kBlock / kStripQueries];
};

// A packed block of keys.
struct KeyPanels {
  uint32_t* k_columns;  // right panel [padded_dim / kPack][kBlock keys]
  uint32_t* v_rows;     // right panel [kBlock keys / kPack][padded_dim]
  int32_t* starts;      // [kBlock]
};

// The first blocks of a head's keys stay packed from one unit of work to the next: units that a
// thread takes one behind the other mostly have the same.
constexpr int64_t kKeptBlocks = 16;
struct KeptKeys {
  int64_t sequence = -1, kv_head = -1;
  bool there[kKeptBlocks] = {};
};

struct ForwardScratch {
  ForwardScratch(const Problem& problem, void* base) : memory(base) {
    const int64_t padded = problem.padded_dim();
    kept = memory.take<KeptKeys>(1);
    for (QueryState& state : states) {
      state.q_rows = memory.take<uint32_t>(padded / kPack * kBlock);
      state.out = memory.take<float>(padded * kBlock);
      state.offset = memory.take<float>(kBlock);
      state.limit = memory.take<float>(kBlock);
      state.sums = memory.take<float>(kBlock * kLanes);
      state.starts = memory.take<int32_t>(kBlock);
    }
    rows = memory.take<uint32_t>(padded / kPack * kBlock);
    const int64_t blocks = (problem.sequence_length + kBlock - 1) / kBlock;
    for (int64_t i = 0; i <= std::min(blocks - 1, kKeptBlocks); ++i) {
      keys[i].k_columns = memory.take<uint32_t>(padded / kPack * kBlock);
      keys[i].v_rows = memory.take<uint32_t>(padded / kPack * kBlock);
      keys[i].starts = memory.take<int32_t>(kBlock);
    }
    scores = memory.take<float>(kStripQueries * kBlock);
    probabilities = memory.take<uint32_t>(kStripQueries * kBlockWords);
  }
  Scratch memory;
  KeptKeys* kept;
  QueryState states[kGroupBlocks];
  uint32_t* rows;                   // while packing
  KeyPanels keys[kKeptBlocks + 1];  // by block; the last is of all others
  float* scores;                    // [kStripQueries, kBlock keys]
  uint32_t* probabilities;          // left panel [kStripQueries][kBlock keys / kPack]
};

// Moves the offset of one query to its largest score.
HWY_NOINLINE void move_offset(VF32 largest, float log2_scale, bool begun, int64_t padded_dim,
                              float* offset, float* limit, float* sums, float* out) {
  const F32 d;
  const VF32 to = hn::MaxOfLanes(d, largest), factor = hn::Set(d, log2_scale);
  const VF32 shrink = exp2(hn::Mul(hn::Sub(hn::Set(d, *offset), to), factor));
  *offset = hn::GetLane(to);
  *limit = *offset + kMostLog2 / log2_scale;
  hn::Store(hn::Mul(hn::Load(d, sums), shrink), d, sums);
  if (!begun) return;
  for (int64_t dim = 0; dim < padded_dim; dim += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, out + dim), shrink), d, out + dim);
  }
}

// One step of the online softmax: the scores of a strip of queries to probabilities relative to
// their offsets.
template <int64_t kColumns>
HWY_NOINLINE void softmax_step(const ForwardScratch& scratch, int64_t first_query, int64_t queries,
                               float log2_scale, int64_t padded_dim, QueryState& state) {
  const F32 d;
  const VF32 factor = hn::Set(d, log2_scale);
  const bool begun = state.begun[first_query / kStripQueries];
  for (int64_t row = 0; row < queries; ++row) {
    const float* scores = scratch.scores + row * kBlock;
    uint32_t* probabilities = scratch.probabilities + row * kBlockWords;
    const int64_t query = first_query + row;
    VF32 largest = hn::Load(d, scores);
    SKEIN_UNROLL for (int64_t col = kLanes; col < kColumns; col += kLanes) {
      largest = hn::Max(largest, hn::Load(d, scores + col));
    }
    float* sums = state.sums + query * kLanes;
    if (!hn::AllFalse(d, hn::Gt(largest, hn::Set(d, state.limit[query])))) {
      move_offset(largest, log2_scale, begun, padded_dim, state.offset + query, state.limit + query,
                  sums, state.out + query * padded_dim);
    }
    const VF32 offset = hn::Set(d, state.offset[query] * log2_scale);
    VF32 low_sum = hn::Load(d, sums), high_sum = hn::Zero(d);
    SKEIN_UNROLL for (int64_t col = 0; col < kColumns; col += 2 * kLanes) {
      const VF32 low = exp2(hn::MulSub(hn::Load(d, scores + col), factor, offset));
      const VF32 high = exp2(hn::MulSub(hn::Load(d, scores + col + kLanes), factor, offset));
      low_sum = hn::Add(low_sum, low);
      high_sum = hn::Add(high_sum, high);
      store_words(low, high, probabilities + col / kPack);
    }
    hn::Store(hn::Add(low_sum, high_sum), d, sums);
  }
}

template <typename T>
void begin_queries(const Problem& problem, int64_t sequence, int64_t head, int64_t block,
                   QueryState& state) {
  state.queries = query_range(problem, block);
  state.keys = visible_keys(problem, sequence, state.queries);
  const int64_t first_row = problem.query_row(sequence, state.queries.begin);
  pack_rows(row_at<T>(problem.q, first_row, head * problem.head_dim), problem.q.row_stride,
            state.queries.end - state.queries.begin, problem.head_dim, problem.padded_dim(),
            state.q_rows);
  load_starts(problem, sequence, state.queries, state.starts);
  std::fill_n(state.offset, kBlock, kNoMaximum);
  std::fill_n(state.limit, kBlock, kNoMaximum);
  std::fill_n(state.sums, kBlock * kLanes, 0.0f);
  std::fill(std::begin(state.begun), std::end(state.begun), false);
}

template <typename T>
void pack_keys(const Problem& problem, int64_t sequence, int64_t kv_head, Range keys,
               uint32_t* rows, const KeyPanels& to) {
  const int64_t padded = problem.padded_dim(), num = keys.end - keys.begin;
  const int64_t row = sequence * problem.sequence_length + keys.begin;
  const int64_t col = kv_head * problem.head_dim;
  pack_rows(row_at<T>(problem.k, row, col), problem.k.row_stride, num, problem.head_dim, padded,
            rows);
  transpose(rows, kBlock, padded / kPack, to.k_columns);
  pack_pairs(row_at<T>(problem.v, row, col), problem.v.row_stride, num, problem.head_dim, padded,
             rows, to.v_rows);
  load_starts(problem, sequence, keys, to.starts);
}

// The panels of a block of keys, packed if they are not there.
template <typename T>
const KeyPanels& panels_of(const Problem& problem, int64_t sequence, int64_t kv_head, int64_t block,
                           const ForwardScratch& scratch) {
  KeptKeys& kept = *scratch.kept;
  if (kept.sequence != sequence || kept.kv_head != kv_head) kept = {sequence, kv_head};
  const KeyPanels& panels = scratch.keys[std::min(block, kKeptBlocks)];
  const bool stays = block < kKeptBlocks;
  if (stays && kept.there[block]) return panels;
  pack_keys<T>(problem, sequence, kv_head, key_range(problem, block), scratch.rows, panels);
  if (stays) kept.there[block] = true;
  return panels;
}

// A strip of a block's queries whose scores with a block of keys are computed.
struct Strip {
  int64_t first = 0, queries = 0, columns = 0;  // no queries: there was none
};

// Of the block's strips from `first` on the next one that sees some of the keys.
inline Strip score_strip(const Problem& problem, Range keys, const KeyPanels& panels, int64_t first,
                         const ForwardScratch& scratch, const QueryState& state) {
  const int64_t row_words = problem.padded_dim() / kPack;
  const int64_t num_queries = state.queries.end - state.queries.begin;
  for (; first < num_queries; first += kStripQueries) {
    const int64_t num = std::min(kStripQueries, num_queries - first);
    const int64_t behind = state.queries.begin + first + num;
    const int64_t end = problem.causal ? std::min(keys.end, behind) : keys.end;
    if (end <= keys.begin) continue;
    const int64_t columns = round_up(end - keys.begin, kColumnMultiple);
    product<Start::kZero>(num, columns, words_of(problem.head_dim),
                          state.q_rows + first * row_words, row_words, panels.k_columns, kBlock,
                          scratch.scores, kBlock);
    return {first, num, columns};
  }
  return {};
}

// The products of a strip's probabilities come behind those of the next one's scores: tiles read
// what vectors have just stored only when it has reached the cache.
inline void attend(const Problem& problem, int64_t sequence, Range keys, const KeyPanels& panels,
                   const ForwardScratch& scratch, QueryState& state) {
  const int64_t padded = problem.padded_dim();
  const bool visible = all_visible(problem, sequence, state.queries, keys);
  Strip strip = score_strip(problem, keys, panels, 0, scratch, state);
  while (strip.queries > 0) {
    if (!visible || keys.end - keys.begin < strip.columns) {
      mask_scores(state.starts + strip.first, panels.starts, strip.queries, strip.columns,
                  state.queries.begin + strip.first, keys.begin,
                  problem.causal ? Causal::kRowsAreQueries : Causal::kNone, scratch.scores);
    }
    const auto softmax = strip.columns == kBlock ? softmax_step<kBlock> : softmax_step<kBlock / 2>;
    softmax(scratch, strip.first, strip.queries, problem.scale * kLog2E, padded, state);
    const Strip next =
        score_strip(problem, keys, panels, strip.first + kStripQueries, scratch, state);
    bool& begun = state.begun[strip.first / kStripQueries];
    const auto add = begun ? product<Start::kLoad> : product<Start::kZero>;
    add(strip.queries, padded, strip.columns / kPack, scratch.probabilities, kBlockWords,
        panels.v_rows, padded, state.out + strip.first * padded, padded);
    begun = true;
    strip = next;
  }
}

template <typename T>
void finish_queries(const Problem& problem, int64_t sequence, int64_t head,
                    const QueryState& state) {
  const F32 d;
  const int64_t first_row = problem.query_row(sequence, state.queries.begin);
  for (int64_t i = 0; i < state.queries.end - state.queries.begin; ++i) {
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, state.sums + i * kLanes)));
    *(problem.lse.as<float>() + (first_row + i) * problem.lse.row_stride + head) =
        state.offset[i] * problem.scale + std::log(sum);
    const VF32 inverse = hn::Set(d, 1.0f / sum);
    const float* out = state.out + i * problem.padded_dim();
    T* to = problem.o.as<T>() + (first_row + i) * problem.o.row_stride + head * problem.head_dim;
    fetch_row(to + kRowsAhead * problem.o.row_stride, problem.head_dim);
    for (int64_t dim = 0; dim < problem.head_dim; dim += kLanes) {
      store(hn::Mul(hn::Load(d, out + dim), inverse), d, to + dim,
            std::min<int64_t>(kLanes, problem.head_dim - dim));
    }
  }
}

template <typename T>
void forward(const Problem& problem, int64_t sequence, int64_t head, int64_t group, void* memory) {
  const Unit unit;
  ForwardScratch scratch(problem, memory);
  const int64_t first_block = group * kGroupBlocks;
  const int64_t num = std::min(kGroupBlocks, problem.num_blocks() - first_block);
  Range keys = {problem.sequence_length, 0};
  for (int64_t i = 0; i < num; ++i) {
    QueryState& state = scratch.states[i];
    begin_queries<T>(problem, sequence, head, first_block + i, state);
    keys = {std::min(keys.begin, state.keys.begin), std::max(keys.end, state.keys.end)};
  }
  for (int64_t block = keys.begin / kBlock; block * kBlock < keys.end; ++block) {
    const Range range = key_range(problem, block);
    const bool seen =
        std::any_of(scratch.states, scratch.states + num,
                    [&](const QueryState& state) { return intersects(range, state.keys); });
    if (!seen) continue;
    const KeyPanels& panels =
        panels_of<T>(problem, sequence, head / problem.group_size(), block, scratch);
    for (int64_t i = 0; i < num; ++i) {
      QueryState& state = scratch.states[i];
      if (intersects(range, state.keys)) attend(problem, sequence, range, panels, scratch, state);
    }
  }
  for (int64_t i = 0; i < num; ++i) {
    finish_queries<T>(problem, sequence, head, scratch.states[i]);
  }
}

inline void begin_forward(const Problem& problem, void* memory) {
  *ForwardScratch(problem, memory).kept = {};
}

inline int64_t forward_bytes(const Problem& problem) {
  return ForwardScratch(problem, nullptr).memory.used();
}

}  // namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS
HWY_AFTER_NAMESPACE();
