// The forward block kernel of attention; included like attention_tile-inl.h.
//
// Scores are kept transposed, [keys, queries]: sums and maxima over keys then run down the rows,
// with one query per lane, and probabilities already have the layout that the next product reads.
SKEIN_ATTENTION_BEGIN

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
// The maximum of no scores: finite, so that a query that has seen no key yet does not produce a
// NaN.
constexpr float kNoMaximum = -1e30f;

constexpr int64_t words_of(int64_t elements) { return (elements + kPack - 1) / kPack; }

template <typename T>
const T* row_at(const View& view, int64_t row, int64_t col) {
  return view.as<const T>() + row * view.row_stride + col;
}

// The document starts of a block's queries; past the end -1, which matches no key.
inline void load_starts(const Problem& problem, int64_t sequence, Range queries, int32_t* starts) {
  for (int64_t i = 0; i < kBlock; ++i) {
    const int64_t position = queries.begin + i;
    starts[i] =
        position < queries.end ? problem.start[sequence * problem.sequence_length + position] : -1;
  }
}

// to[rows, head_dim] = columns[head_dim, kBlock] transposed, times `factor`.
template <typename T>
void store_transposed(const float* columns, int64_t rows, int64_t head_dim, int64_t padded_dim,
                      float factor, float* rows_buffer, T* to, int64_t to_stride) {
  transpose(reinterpret_cast<const uint32_t*>(columns), padded_dim, kBlock,
            reinterpret_cast<uint32_t*>(rows_buffer));
  const F32 d;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < head_dim; col += kLanes) {
      const VF32 value = hn::Load(d, rows_buffer + row * padded_dim + col);
      store(hn::Mul(value, hn::Set(d, factor)), d, to + row * to_stride + col,
            std::min<int64_t>(kLanes, head_dim - col));
    }
  }
}

// ---- forward ----

struct QueryState {
  Range queries;
  Range keys;
  uint32_t* q_columns;  // right panel [padded_dim / kPack][kBlock]
  float* out;           // [padded_dim, kBlock], not divided by `sum` yet
  float* max;           // [kBlock] of the scores, without the scale
  float* sum;           // [kBlock]
  int32_t* starts;      // [kBlock]
};

struct ForwardScratch {
  ForwardScratch(const Problem& problem, void* base) : memory(base) {
    const int64_t padded = problem.padded_dim();
    for (QueryState& state : states) {
      state.q_columns = memory.take<uint32_t>(padded / kPack * kBlock);
      state.out = memory.take<float>(padded * kBlock);
      state.max = memory.take<float>(kBlock);
      state.sum = memory.take<float>(kBlock);
      state.starts = memory.take<int32_t>(kBlock);
    }
    rows = memory.take<uint32_t>(padded / kPack * kBlock);
    pairs = memory.take<uint32_t>(padded / kPack * kBlock);
    v_columns = memory.take<uint32_t>(padded / kPack * kBlock);
    scores = memory.take<float>(kBlock * kBlock);
    probabilities = memory.take<uint32_t>(kBlockWords * kBlock);
    rescale = memory.take<float>(kBlock);
    out_rows = memory.take<float>(padded * kBlock);
  }
  Scratch memory;
  QueryState states[kGroupBlocks];
  uint32_t* rows;           // left panel of keys, or of values or queries while packing
  uint32_t* pairs;          // while packing
  uint32_t* v_columns;      // left panel [padded_dim][kBlock keys]
  float* scores;            // [kBlock keys, kBlock queries]
  uint32_t* probabilities;  // right panel [keys][kBlock queries]
  float* rescale;           // [kBlock]
  float* out_rows;
};

// One step of the online softmax: scores[keys, kBlock] to probabilities relative to the new
// maximum.
HWY_NOINLINE void softmax_step(const float* scores, int64_t keys, float log2_scale, float* max,
                               float* sum, float* rescale, uint32_t* probabilities) {
  const F32 d;
  const VF32 factor = hn::Set(d, log2_scale);
  for (int64_t base = 0; base < kBlock; base += 4 * kLanes) {
    VF32 largest[4], total[4], offset[4];
    SKEIN_UNROLL for (int i = 0; i < 4; ++i) largest[i] = hn::Load(d, max + base + i * kLanes);
    for (int64_t key = 0; key < keys; ++key) {
      SKEIN_UNROLL for (int i = 0; i < 4; ++i) {
        largest[i] = hn::Max(largest[i], hn::Load(d, scores + key * kBlock + base + i * kLanes));
      }
    }
    SKEIN_UNROLL for (int i = 0; i < 4; ++i) {
      const int64_t at = base + i * kLanes;
      offset[i] = hn::Mul(largest[i], factor);
      const VF32 shrink = exp2(hn::Sub(hn::Mul(hn::Load(d, max + at), factor), offset[i]));
      hn::Store(shrink, d, rescale + at);
      hn::Store(largest[i], d, max + at);
      total[i] = hn::Mul(hn::Load(d, sum + at), shrink);
    }
    for (int64_t key = 0; key < keys; key += kPack) {
      SKEIN_UNROLL for (int i = 0; i < 4; i += 2) {
        VF32 tile[kPack][2];
        SKEIN_UNROLL for (int row = 0; row < kPack; ++row) {
          SKEIN_UNROLL for (int half = 0; half < 2; ++half) {
            const float* score = scores + (key + row) * kBlock + base + (i + half) * kLanes;
            const VF32 x = hn::MulSub(hn::Load(d, score), factor, offset[i + half]);
            tile[row][half] = row == 0 || key + row < keys ? exp2(x) : hn::Zero(d);
            total[i + half] = hn::Add(total[i + half], tile[row][half]);
          }
        }
        store_panels(tile, key, base + i * kLanes, nullptr, probabilities);
      }
    }
    SKEIN_UNROLL for (int i = 0; i < 4; ++i) hn::Store(total[i], d, sum + base + i * kLanes);
  }
}

template <typename T>
void begin_queries(const Problem& problem, int64_t sequence, int64_t head, int64_t block,
                   const ForwardScratch& scratch, QueryState& state) {
  const int64_t padded = problem.padded_dim();
  state.queries = query_range(problem, block);
  state.keys = visible_keys(problem, sequence, state.queries);
  const int64_t first_row = problem.query_row(sequence, state.queries.begin);
  pack_rows(row_at<T>(problem.q, first_row, head * problem.head_dim), problem.q.row_stride,
            state.queries.end - state.queries.begin, problem.head_dim, padded, scratch.rows);
  transpose(scratch.rows, kBlock, padded / kPack, state.q_columns);
  load_starts(problem, sequence, state.queries, state.starts);
  std::fill_n(state.out, padded * kBlock, 0.0f);
  std::fill_n(state.max, kBlock, kNoMaximum);
  std::fill_n(state.sum, kBlock, 0.0f);
}

inline void attend(const Problem& problem, int64_t sequence, Range keys,
                   const ForwardScratch& scratch, QueryState& state) {
  const int64_t num_keys = keys.end - keys.begin, row_words = problem.padded_dim() / kPack;
  product<Start::kZero>(num_keys, kBlock, words_of(problem.head_dim), scratch.rows, row_words,
                        state.q_columns, kBlock, scratch.scores, kBlock);
  if (!all_visible(problem, sequence, state.queries, keys)) {
    mask_scores(state.starts, problem.start + sequence * problem.sequence_length + keys.begin,
                num_keys, state.queries.begin, keys.begin, problem.causal, scratch.scores);
  }
  softmax_step(scratch.scores, num_keys, problem.scale * kLog2E, state.max, state.sum,
               scratch.rescale, scratch.probabilities);
  fill_steps(scratch.probabilities, words_of(num_keys));
  product<Start::kScaled>(problem.head_dim, kBlock, words_of(num_keys), scratch.v_columns,
                          kBlockWords, scratch.probabilities, kBlock, state.out, kBlock,
                          scratch.rescale);
}

template <typename T>
void finish_queries(const Problem& problem, int64_t sequence, int64_t head,
                    const ForwardScratch& scratch, QueryState& state) {
  const int64_t num = state.queries.end - state.queries.begin;
  const int64_t first_row = problem.query_row(sequence, state.queries.begin);
  for (int64_t i = 0; i < num; ++i) {
    *(problem.lse.as<float>() + (first_row + i) * problem.lse.row_stride + head) =
        state.max[i] * problem.scale + std::log(state.sum[i]);
  }
  const F32 d;
  for (int64_t col = 0; col < kBlock; col += kLanes) {
    const VF32 inverse = hn::Div(hn::Set(d, 1.0f), hn::Load(d, state.sum + col));
    for (int64_t dim = 0; dim < problem.head_dim; ++dim) {
      float* at = state.out + dim * kBlock + col;
      hn::Store(hn::Mul(hn::Load(d, at), inverse), d, at);
    }
  }
  store_transposed(state.out, num, problem.head_dim, problem.padded_dim(), 1.0f, scratch.out_rows,
                   problem.o.as<T>() + first_row * problem.o.row_stride + head * problem.head_dim,
                   problem.o.row_stride);
}

template <typename T>
void forward(const Problem& problem, int64_t sequence, int64_t head, int64_t group, void* memory) {
  const Unit unit;
  ForwardScratch scratch(problem, memory);
  const int64_t padded = problem.padded_dim(), first_block = group * kGroupBlocks;
  const int64_t num = std::min(kGroupBlocks, problem.num_blocks() - first_block);
  Range keys = {problem.sequence_length, 0};
  for (int64_t i = 0; i < num; ++i) {
    QueryState& state = scratch.states[i];
    begin_queries<T>(problem, sequence, head, first_block + i, scratch, state);
    keys = {std::min(keys.begin, state.keys.begin), std::max(keys.end, state.keys.end)};
  }
  const int64_t kv_col = head / problem.group_size() * problem.head_dim;
  for (int64_t block = keys.begin / kBlock; block * kBlock < keys.end; ++block) {
    const Range range = key_range(problem, block);
    const bool seen =
        std::any_of(scratch.states, scratch.states + num,
                    [&](const QueryState& state) { return intersects(range, state.keys); });
    if (!seen) continue;
    const int64_t num_keys = range.end - range.begin;
    const int64_t first_row = sequence * problem.sequence_length + range.begin;
    pack_rows(row_at<T>(problem.v, first_row, kv_col), problem.v.row_stride, num_keys,
              problem.head_dim, padded, scratch.rows);
    pair_rows(scratch.rows, padded, scratch.pairs);
    transpose(scratch.pairs, kBlockWords, padded, scratch.v_columns);
    pack_rows(row_at<T>(problem.k, first_row, kv_col), problem.k.row_stride, num_keys,
              problem.head_dim, padded, scratch.rows);
    for (int64_t i = 0; i < num; ++i) {
      QueryState& state = scratch.states[i];
      if (intersects(range, state.keys)) attend(problem, sequence, range, scratch, state);
    }
  }
  for (int64_t i = 0; i < num; ++i) {
    finish_queries<T>(problem, sequence, head, scratch, scratch.states[i]);
  }
}

inline int64_t forward_bytes(const Problem& problem) {
  return ForwardScratch(problem, nullptr).memory.used();
}

SKEIN_ATTENTION_END
