// The backward block kernel of attention; included like attention_tile-inl.h, after the forward
// kernel. Its scores are [keys, queries].
//
// Blocks of queries and of keys go in groups: every pair of a group leaves its probabilities and ds
// side by side, and one product sums over all queries, or keys, of the group.
SKEIN_ATTENTION_ATTRIBUTES
namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS {
namespace hn = hwy::HWY_NAMESPACE;

#ifdef SKEIN_ATTENTION_UNIT
constexpr int64_t kStripKeys = 16;  // as kStripQueries
constexpr int64_t kGroup = 4;       // blocks: tiles of sums in the L2 cache cost more than products
#else
constexpr int64_t kStripKeys = 8;  // the scores of a strip stay in the L1 cache
constexpr int64_t kGroup = 1;
#endif
constexpr int64_t kGroupWords = kGroup * kBlockWords;

struct BackwardScratch {
  BackwardScratch(const Problem& problem, void* base) : memory(base) {
    const int64_t padded = problem.padded_dim(), panel = padded / kPack * kBlock;
    const int64_t blocks = problem.piece_keys() / kBlock;
    k_rows = memory.take<uint32_t>(blocks * panel);
    v_rows = memory.take<uint32_t>(blocks * panel);
    k_columns = memory.take<uint32_t>(round_up(blocks, kGroup) * panel);
    dk = memory.take<float>(blocks * padded * kBlock);
    dv = memory.take<float>(blocks * padded * kBlock);
    rows = memory.take<uint32_t>(panel);
    for (uint32_t** part : {&q_columns, &q_rows, &grad_columns, &grad_rows}) {
      *part = memory.take<uint32_t>(kGroup * panel);
    }
    dq = memory.take<float>(kGroup * padded * kBlock);
    dq_rows = memory.take<float>(padded * kBlock);
    scores = memory.take<float>(kStripKeys * kBlock);
    dp = memory.take<float>(kStripKeys * kBlock);
    p = memory.take<uint32_t>(kBlock * kGroupWords);
    ds = memory.take<uint32_t>(kBlock * kGroupWords);
    ds_pairs = kPack == 1 ? ds : memory.take<uint32_t>(kGroup * kGroupWords * kBlock);
    log2_sum = memory.take<float>(kGroup * kBlock);
    delta = memory.take<float>(kGroup * kBlock);
    starts = memory.take<int32_t>(kGroup * kBlock);
  }
  Scratch memory;
  // For the piece's keys, one panel per block; k_columns has the blocks of a group side by side.
  uint32_t *k_rows, *v_rows;  // left panels [kBlock keys][padded_dim / kPack]
  uint32_t* k_columns;        // left panels [padded_dim][keys of a group]
  float *dk, *dv;             // [kBlock keys, padded_dim]
  // For a group of blocks of queries.
  uint32_t* rows;                      // while packing
  uint32_t *q_columns, *grad_columns;  // by block, right panels [padded_dim / kPack][kBlock]
  uint32_t *q_rows, *grad_rows;        // right panels [queries / kPack][padded_dim]
  float *dq, *dq_rows;                 // by block [padded_dim, kBlock], and a block's transpose
  float *log2_sum, *delta;             // [queries]: lse / ln 2, do . o
  int32_t* starts;                     // [queries]
  // For one pair of blocks.
  float *scores, *dp;  // [kStripKeys, kBlock]
  // For one block of keys, and the group of queries.
  uint32_t *p, *ds;  // left panels [kBlock keys][queries]
  // For a group of keys.
  uint32_t* ds_pairs;  // ds as right panels, by block of queries [keys][kBlock queries]
};

// to[rows, head_dim] = columns[head_dim, kBlock] transposed, times `factor`.
template <typename T>
void store_transposed(const float* columns, int64_t rows, int64_t head_dim, int64_t padded_dim,
                      float factor, float* rows_buffer, T* to, int64_t to_stride) {
  transpose(reinterpret_cast<const uint32_t*>(columns), padded_dim, kBlock,
            reinterpret_cast<uint32_t*>(rows_buffer));
  const F32 d;
  for (int64_t row = 0; row < rows; ++row) {
    fetch_row(to + (row + kRowsAhead) * to_stride, head_dim);
    for (int64_t col = 0; col < head_dim; col += kLanes) {
      const VF32 value = hn::Load(d, rows_buffer + row * padded_dim + col);
      store(hn::Mul(value, hn::Set(d, factor)), d, to + row * to_stride + col,
            std::min<int64_t>(kLanes, head_dim - col));
    }
  }
}

template <typename T>
void begin_piece(const Problem& problem, int64_t sequence, int64_t kv_head, Range keys,
                 const BackwardScratch& scratch) {
  const int64_t padded = problem.padded_dim(), panel = padded / kPack * kBlock;
  for (int64_t first = keys.begin; first < keys.end; first += kBlock) {
    const int64_t block = (first - keys.begin) / kBlock, at = block * panel;
    const int64_t num = std::min(kBlock, keys.end - first);
    const int64_t row = sequence * problem.sequence_length + first;
    const int64_t col = kv_head * problem.head_dim;
    pack_rows(row_at<T>(problem.k, row, col), problem.k.row_stride, num, problem.head_dim, padded,
              scratch.k_rows + at);
    pack_rows(row_at<T>(problem.v, row, col), problem.v.row_stride, num, problem.head_dim, padded,
              scratch.v_rows + at);
    pair_rows(scratch.k_rows + at, padded, scratch.rows);
    transpose_words(
        scratch.rows, padded, kBlockWords, padded,
        scratch.k_columns + block / kGroup * kGroup * panel + block % kGroup * kBlockWords,
        kGroupWords);
  }
  const int64_t size = round_up(keys.end - keys.begin, kBlock) * padded;
  std::fill_n(scratch.dk, size, 0.0f);
  std::fill_n(scratch.dv, size, 0.0f);
}

// delta = do . o and the logarithm of the softmax's sum, of each query of a block.
template <typename T>
void load_statistics(const Problem& problem, int64_t first_row, int64_t num, int64_t head,
                     float* log2_sum, float* delta) {
  const F32 d;
  std::fill_n(log2_sum, kBlock, 0.0f);
  std::fill_n(delta, kBlock, 0.0f);
  for (int64_t i = 0; i < num; ++i) {
    const T* grad = row_at<T>(problem.grad, first_row + i, head * problem.head_dim);
    const T* out = row_at<T>(problem.o, first_row + i, head * problem.head_dim);
    fetch_row(out + kRowsAhead * problem.o.row_stride, problem.head_dim);
    VF32 sum = hn::Zero(d);
    for (int64_t dim = 0; dim < problem.head_dim; dim += kLanes) {
      const auto n = static_cast<size_t>(std::min(kLanes, problem.head_dim - dim));
      sum = hn::MulAdd(load(d, grad + dim, n), load(d, out + dim, n), sum);
    }
    delta[i] = hn::GetLane(hn::SumOfLanes(d, sum));
    log2_sum[i] = *row_at<float>(problem.lse, first_row + i, head) * kLog2E;
  }
}

// `at`: the block's place in its group.
template <typename T>
void begin_query_block(const Problem& problem, int64_t sequence, int64_t head, Range queries,
                       int64_t at, const BackwardScratch& scratch) {
  const int64_t padded = problem.padded_dim(), num = queries.end - queries.begin;
  const int64_t panel_offset = at * (padded / kPack * kBlock);
  const int64_t first_row = problem.query_row(sequence, queries.begin);
  const int64_t col = head * problem.head_dim;
  pack_rows(row_at<T>(problem.q, first_row, col), problem.q.row_stride, num, problem.head_dim,
            padded, scratch.rows);
  transpose(scratch.rows, kBlock, padded / kPack, scratch.q_columns + panel_offset);
  pair_rows(scratch.rows, padded, scratch.q_rows + panel_offset);
  pack_rows(row_at<T>(problem.grad, first_row, col), problem.grad.row_stride, num, problem.head_dim,
            padded, scratch.rows);
  transpose(scratch.rows, kBlock, padded / kPack, scratch.grad_columns + panel_offset);
  pair_rows(scratch.rows, padded, scratch.grad_rows + panel_offset);
  load_statistics<T>(problem, first_row, num, head, scratch.log2_sum + at * kBlock,
                     scratch.delta + at * kBlock);
  load_starts(problem, sequence, queries, scratch.starts + at * kBlock);
  std::fill_n(scratch.dq + at * padded * kBlock, padded * kBlock, 0.0f);
}

// Where a pair of blocks has its panels; the places of its blocks in their groups.
struct PairPlace {
  int64_t queries = 0, keys = 0;

  uint32_t* left(uint32_t* panel) const { return panel + queries * kBlockWords; }
  uint32_t* right(uint32_t* panel) const {
    return panel + (queries * kGroup + keys) * kBlockWords * kBlock;
  }
};

// Turns a strip of scores and dp into probabilities and ds, in the panels that the products read.
HWY_INLINE void strip_gradients(PairPlace place, int64_t first_key, int64_t keys, float log2_scale,
                                const BackwardScratch& scratch) {
  const F32 d;
  const VF32 factor = hn::Set(d, log2_scale);
  const float* log2_sum = scratch.log2_sum + place.queries * kBlock;
  const float* deltas = scratch.delta + place.queries * kBlock;
  for (int64_t col = 0; col < kBlock; col += 2 * kLanes) {
    const VF32 offset[2] = {hn::Load(d, log2_sum + col), hn::Load(d, log2_sum + col + kLanes)};
    const VF32 delta[2] = {hn::Load(d, deltas + col), hn::Load(d, deltas + col + kLanes)};
    for (int64_t key = 0; key < keys; key += kPack) {
      VF32 p[kPack][2], ds[kPack][2];
      SKEIN_UNROLL for (int row = 0; row < kPack; ++row) {
        SKEIN_UNROLL for (int half = 0; half < 2; ++half) {
          const int64_t at = (key + row) * kBlock + col + half * kLanes;
          const VF32 x = hn::MulSub(hn::Load(d, scratch.scores + at), factor, offset[half]);
          const VF32 dp = hn::Load(d, scratch.dp + at);
          const bool inside = row == 0 || key + row < keys;
          p[row][half] = inside ? exp2(x) : hn::Zero(d);
          ds[row][half] = inside ? hn::Mul(p[row][half], hn::Sub(dp, delta[half])) : hn::Zero(d);
        }
      }
      store_left(p, first_key + key, col, place.left(scratch.p), kGroupWords);
      store_left(ds, first_key + key, col, place.left(scratch.ds), kGroupWords);
      store_right(ds, first_key + key, col, place.right(scratch.ds_pairs));
    }
  }
}

// One pair of blocks: its probabilities and ds. `block`: of the keys, in the piece.
inline void pair_gradients(const Problem& problem, int64_t sequence, Range queries, Range keys,
                           int64_t block, PairPlace place, const BackwardScratch& scratch) {
  const int64_t padded = problem.padded_dim(), row_words = padded / kPack;
  const int64_t num_keys = keys.end - keys.begin, steps = words_of(problem.head_dim);
  const int64_t panel = row_words * kBlock;
  const bool visible = all_visible(problem, sequence, queries, keys);
  const int32_t* key_starts = problem.start + sequence * problem.sequence_length + keys.begin;
  const int32_t* starts = scratch.starts + place.queries * kBlock;
  const uint32_t* k_rows = scratch.k_rows + block * panel;
  const uint32_t* v_rows = scratch.v_rows + block * panel;
  for (int64_t key = 0; key < num_keys; key += kStripKeys) {
    const int64_t num = std::min(kStripKeys, num_keys - key);
    product<Start::kZero>(num, kBlock, steps, k_rows + key * row_words, row_words,
                          scratch.q_columns + place.queries * panel, kBlock, scratch.scores,
                          kBlock);
    product<Start::kZero>(num, kBlock, steps, v_rows + key * row_words, row_words,
                          scratch.grad_columns + place.queries * panel, kBlock, scratch.dp, kBlock);
    if (!visible) {
      mask_scores(key_starts + key, starts, num, kBlock, keys.begin + key, queries.begin,
                  problem.causal ? Causal::kRowsAreKeys : Causal::kNone, scratch.scores);
    }
    strip_gradients(place, key, num, problem.scale * kLog2E, scratch);
  }
  fill_steps(place.right(scratch.ds_pairs), words_of(num_keys));
}

// Makes a range of neighbours longer by the next one.
inline void include(Range& range, int64_t at) {
  range = {range.begin == range.end ? at : range.begin, at + 1};
}

// A group of blocks of queries.
struct QueryGroup {
  Range queries[kGroup];
  Range visible[kGroup];  // keys; none where the block has nothing to do with the piece
};

// Adds what a group of queries and one of keys give to dk, dv and dq. `first`: of its keys.
inline void attend_backward(const Problem& problem, int64_t sequence, const QueryGroup& group,
                            Range piece, int64_t first, const BackwardScratch& scratch) {
  const int64_t padded = problem.padded_dim(), panel = padded / kPack * kBlock;
  int64_t last_keys = 0;    // of the last block of keys that there is
  Range keys_seen[kGroup];  // by block of queries: blocks of keys
  for (int64_t at = 0; at < kGroup && first + at * kBlock < piece.end; ++at) {
    const Range keys = {first + at * kBlock, std::min(first + (at + 1) * kBlock, piece.end)};
    const int64_t block = (keys.begin - piece.begin) / kBlock;
    Range queries_seen;
    last_keys = keys.end - keys.begin;
    for (int64_t of_queries = 0; of_queries < kGroup; ++of_queries) {
      if (!intersects(keys, group.visible[of_queries])) continue;
      pair_gradients(problem, sequence, group.queries[of_queries], keys, block, {of_queries, at},
                     scratch);
      include(queries_seen, of_queries);
      include(keys_seen[of_queries], at);
    }
    const int64_t begin = queries_seen.begin, steps = (queries_seen.end - begin) * kBlockWords;
    if (steps == 0) continue;
    product<Start::kLoad>(last_keys, padded, steps, scratch.p + begin * kBlockWords, kGroupWords,
                          scratch.grad_rows + begin * panel, padded,
                          scratch.dv + block * kBlock * padded, padded);
    product<Start::kLoad>(last_keys, padded, steps, scratch.ds + begin * kBlockWords, kGroupWords,
                          scratch.q_rows + begin * panel, padded,
                          scratch.dk + block * kBlock * padded, padded);
  }
  const int64_t group_keys = (first - piece.begin) / kBlock * panel;
  for (int64_t of_queries = 0; of_queries < kGroup; ++of_queries) {
    const Range seen = keys_seen[of_queries];
    if (seen.begin == seen.end) continue;
    const bool is_last = first + seen.end * kBlock >= piece.end;
    const int64_t num_keys = (seen.end - seen.begin - 1) * kBlock + (is_last ? last_keys : kBlock);
    product<Start::kLoad>(problem.head_dim, kBlock, words_of(num_keys),
                          scratch.k_columns + group_keys + seen.begin * kBlockWords, kGroupWords,
                          PairPlace{of_queries, seen.begin}.right(scratch.ds_pairs), kBlock,
                          scratch.dq + of_queries * padded * kBlock, kBlock);
  }
}

template <typename T>
void store_piece(const float* from, int64_t padded, Range keys, float factor, const View& to,
                 int64_t first_row, int64_t first_col, int64_t head_dim) {
  const F32 d;
  for (int64_t key = 0; key < keys.end - keys.begin; ++key) {
    T* row = to.as<T>() + (first_row + key) * to.row_stride + first_col;
    fetch_row(row + kRowsAhead * to.row_stride, head_dim);
    for (int64_t dim = 0; dim < head_dim; dim += kLanes) {
      const VF32 value = hn::Mul(hn::Load(d, from + key * padded + dim), hn::Set(d, factor));
      store(value, d, row + dim, std::min(kLanes, head_dim - dim));
    }
  }
}

// dq of a block: to its place, or where a piece has its part.
template <typename T>
void store_queries(const Problem& problem, int64_t sequence, int64_t head, int64_t piece,
                   Range queries, const float* dq, const BackwardScratch& scratch,
                   float* dq_pieces) {
  const int64_t padded = problem.padded_dim(), head_dim = problem.head_dim;
  const int64_t num = queries.end - queries.begin, stride = problem.dq.row_stride;
  if (dq_pieces == nullptr) {
    const int64_t row = problem.query_row(sequence, queries.begin);
    store_transposed(dq, num, head_dim, padded, problem.scale, scratch.dq_rows,
                     problem.dq.as<T>() + row * stride + head * head_dim, stride);
  } else {
    store_transposed(dq, num, head_dim, padded, problem.scale, scratch.dq_rows,
                     dq_pieces + problem.dq_piece_offset(piece, sequence, head) +
                         problem.query_row(0, queries.begin) * head_dim,
                     head_dim);
  }
}

template <typename T>
void backward(const Problem& problem, int64_t sequence, int64_t kv_head, int64_t piece,
              void* memory, float* dq_pieces) {
  const Unit unit;
  const BackwardScratch scratch(problem, memory);
  const int64_t padded = problem.padded_dim(), head_dim = problem.head_dim;
  const Range keys = {piece * problem.piece_keys(),
                      std::min((piece + 1) * problem.piece_keys(), problem.sequence_length)};
  begin_piece<T>(problem, sequence, kv_head, keys, scratch);
  for (int64_t in_group = 0; in_group < problem.group_size(); ++in_group) {
    const int64_t head = kv_head * problem.group_size() + in_group;
    for (int64_t block = 0; block < problem.num_blocks(); block += kGroup) {
      QueryGroup group;
      for (int64_t at = 0; at < std::min(kGroup, problem.num_blocks() - block); ++at) {
        group.queries[at] = query_range(problem, block + at);
        const Range visible = visible_keys(problem, sequence, group.queries[at]);
        if (!intersects(visible, keys)) continue;
        group.visible[at] = visible;
        begin_query_block<T>(problem, sequence, head, group.queries[at], at, scratch);
      }
      for (int64_t first = keys.begin; first < keys.end; first += kGroup * kBlock) {
        attend_backward(problem, sequence, group, keys, first, scratch);
      }
      for (int64_t at = 0; at < kGroup; ++at) {
        if (group.visible[at].begin == group.visible[at].end) continue;
        store_queries<T>(problem, sequence, head, piece, group.queries[at],
                         scratch.dq + at * padded * kBlock, scratch, dq_pieces);
      }
    }
  }
  const int64_t row = sequence * problem.sequence_length + keys.begin, col = kv_head * head_dim;
  store_piece<T>(scratch.dk, padded, keys, problem.scale, problem.dk, row, col, head_dim);
  store_piece<T>(scratch.dv, padded, keys, 1.0f, problem.dv, row, col, head_dim);
}

// Adds up dq of one block over the pieces that its queries see, in order.
template <typename T>
void sum_dq(const Problem& problem, int64_t sequence, int64_t head, int64_t block,
            const float* dq_pieces) {
  const F32 d;
  const Range queries = query_range(problem, block);
  const Range visible = visible_keys(problem, sequence, queries);
  const int64_t size = problem.piece_keys(), head_dim = problem.head_dim;
  const int64_t begin = visible.begin / size, end = (visible.end + size - 1) / size;
  for (int64_t position = queries.begin; position < queries.end; ++position) {
    T* to = problem.dq.as<T>() + problem.query_row(sequence, position) * problem.dq.row_stride +
            head * head_dim;
    const int64_t in_piece = problem.query_row(0, position) * head_dim;
    for (int64_t dim = 0; dim < head_dim; dim += kLanes) {
      const auto n = static_cast<size_t>(std::min(kLanes, head_dim - dim));
      VF32 sum = hn::Zero(d);
      for (int64_t piece = begin; piece < end; ++piece) {
        sum = hn::Add(
            sum,
            load(d, dq_pieces + problem.dq_piece_offset(piece, sequence, head) + in_piece + dim,
                 n));
      }
      store(sum, d, to + dim, n);
    }
  }
}

inline int64_t backward_bytes(const Problem& problem) {
  return BackwardScratch(problem, nullptr).memory.used();
}

inline const Kernels& kernels_of(DType dtype) {
  static constexpr Kernels kF32 = {forward_bytes,  begin_forward,   forward<float>,
                                   backward_bytes, backward<float>, sum_dq<float>};
  static constexpr Kernels kBF16 = {forward_bytes,  begin_forward,      forward<bfloat16>,
                                    backward_bytes, backward<bfloat16>, sum_dq<bfloat16>};
  return dtype == DType::kBF16 ? kBF16 : kF32;
}

}  // namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS
HWY_AFTER_NAMESPACE();
