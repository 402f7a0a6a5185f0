// Blocks of 64 positions: scores, their softmax, and the weighted sums of values, of a few rows at
// a time (a row: a token and query head). Included by paged_attention_cpu.cc for each instruction
// set. Rows share what is loaded of keys and values; the chain of every number is its own, so
// that the bits depend neither on the width of vectors nor on which rows go together.
HWY_BEFORE_NAMESPACE();
namespace skein::paged::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::F32;
using sm::VF32;

constexpr int64_t kLanes = hn::MaxLanes(F32());
constexpr int64_t kSpan = 16;  // positions that certainly lie in one page
constexpr int64_t kSpans = kBlock / kSpan;
constexpr int kTileRows = 6;

// Vectors of a tile whose sums stay in registers.
constexpr int vectors_for(int rows, int most) {
  int vectors = 8;
  while (vectors > most || vectors * rows > (HWY_MAX_BYTES == 64 ? 24 : 12)) vectors /= 2;
  return vectors;
}

// Where the keys or values of a block lie. Of keys: the first dim of each span's first position,
// and the distance of dims. Of values: the first position of each span, and the distance of
// positions. `next`: of the block that follows, which is fetched meanwhile; else the same as `at`.
template <typename E>
struct Spans {
  const E* at[kSpans];
  const E* next[kSpans];
  int64_t stride;
};

// scores[kRows, kVecs vectors from `key` on] = q . keys
template <typename E, int kRows, int kVecs>
HWY_INLINE void score_tile(const Spans<E>& keys, int64_t key, const float* q, int64_t q_stride,
                           int64_t head_dim, float* scores) {
  const F32 d;
  VF32 sums[kRows][kVecs];
  const E *from[kVecs], *next[kVecs];
  SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
    const int64_t first = key + vec * kLanes;
    from[vec] = keys.at[first / kSpan] + first % kSpan;
    next[vec] = keys.next[first / kSpan] + first % kSpan;
    SKEIN_UNROLL for (int row = 0; row < kRows; ++row) sums[row][vec] = hn::Zero(d);
  }
  for (int64_t dim = 0; dim < head_dim; ++dim) {
    VF32 k[kVecs];
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      k[vec] = sm::load(d, from[vec] + dim * keys.stride, kLanes);
      prefetch(next[vec] + dim * keys.stride);
    }
    SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
      const VF32 x = hn::Set(d, q[row * q_stride + dim]);
      SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
        sums[row][vec] = hn::MulAdd(x, k[vec], sums[row][vec]);
      }
    }
  }
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      hn::StoreU(sums[row][vec], d, scores + row * kBlock + key + vec * kLanes);
    }
  }
}

// Of the first `count` keys at least.
template <typename E, int kRows>
HWY_INLINE void score(const Spans<E>& keys, int64_t count, const float* q, int64_t q_stride,
                      int64_t head_dim, float* scores) {
  constexpr int kVecs = vectors_for(kRows, kBlock / kLanes);
  for (int64_t key = 0; key < count; key += kVecs * kLanes) {
    score_tile<E, kRows, kVecs>(keys, key, q, q_stride, head_dim, scores);
  }
}

// sums[kRows, kVecs vectors from `dim` on] += weights of positions [begin, end) times values; with
// begin = 0 the sums start from zero.
template <typename E, int kRows, int kVecs>
HWY_INLINE void value_tile(const Spans<E>& values, int64_t begin, int64_t end, int64_t dim,
                           const float* weights, float* to, int64_t stride) {
  const F32 d;
  VF32 sums[kRows][kVecs];
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      sums[row][vec] =
          begin == 0 ? hn::Zero(d) : hn::LoadU(d, to + row * stride + dim + vec * kLanes);
    }
  }
  for (int64_t key = begin; key < end; ++key) {
    const int64_t offset = key % kSpan * values.stride + dim;
    const E *from = values.at[key / kSpan] + offset, *next = values.next[key / kSpan] + offset;
    VF32 v[kVecs];
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      v[vec] = sm::load(d, from + vec * kLanes, kLanes);
      prefetch(next + vec * kLanes);
    }
    SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
      const VF32 weight = hn::Set(d, weights[row * kBlock + key]);
      SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
        sums[row][vec] = hn::MulAdd(weight, v[vec], sums[row][vec]);
      }
    }
  }
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      hn::StoreU(sums[row][vec], d, to + row * stride + dim + vec * kLanes);
    }
  }
}

template <typename E, int kRows, int kVecs = vectors_for(kRows, 8)>
HWY_INLINE void add_values(const Spans<E>& values, int64_t begin, int64_t end, const float* weights,
                           float* to, int64_t stride, int64_t dim = 0) {
  for (; dim + kVecs * kLanes <= stride; dim += kVecs * kLanes) {
    value_tile<E, kRows, kVecs>(values, begin, end, dim, weights, to, stride);
  }
  if constexpr (kVecs > 1) {
    add_values<E, kRows, kVecs / 2>(values, begin, end, weights, to, stride, dim);
  }
}

// What a row has summed so far, relative to its largest score.
struct Row {
  int64_t context;  // positions that it attends to
  float largest;
  float sums[kSums];
};
// By what the row's sums, and those of the block, are to be multiplied.
struct Factors {
  float old, block;
};

HWY_INLINE Factors factors_of(float largest, float of_block) {
  const F32 d;
  const VF32 difference = hn::Set(d, -std::abs(largest - of_block));
  const float smaller = hn::GetLane(sm::exp(difference));
  return of_block > largest ? Factors{smaller, 1.0f} : Factors{1.0f, smaller};
}

// Turns the first `count` scores into exponentials, relative to the largest one, and the others
// into zeros.
HWY_INLINE Factors softmax_step(float* scores, int64_t count, float scale, Row& row) {
  const F32 d;
  const VF32 factor = hn::Set(d, scale), lowest = hn::Set(d, -INFINITY);
  const auto there = [&](int64_t key) {
    return hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(count - key, 0, kLanes)));
  };
  VF32 most = lowest;
  for (int64_t key = 0; key < kBlock; key += kLanes) {
    const VF32 x = hn::Mul(hn::LoadU(d, scores + key), factor);
    const VF32 seen = hn::IfThenElse(there(key), x, lowest);
    hn::StoreU(seen, d, scores + key);
    most = hn::Max(most, seen);
  }
  most = hn::MaxOfLanes(d, most);
  const float of_block = hn::GetLane(most);
  const Factors factors = factors_of(row.largest, of_block);
  row.largest = of_block > row.largest ? of_block : row.largest;
  for (int64_t lane = 0; lane < kSums; lane += kLanes) {
    VF32 sum = hn::Zero(d);
    for (int64_t key = lane; key < kBlock; key += kSums) {
      const VF32 x = hn::Sub(hn::LoadU(d, scores + key), most);
      const VF32 weight = hn::IfThenElseZero(there(key), sm::exp(x));
      hn::StoreU(weight, d, scores + key);
      sum = hn::Add(sum, weight);
    }
    const VF32 before = hn::Mul(hn::LoadU(d, row.sums + lane), hn::Set(d, factors.old));
    hn::StoreU(hn::MulAdd(sum, hn::Set(d, factors.block), before), d, row.sums + lane);
  }
  return factors;
}

// The outputs' sums and those of a block, put together.
HWY_INLINE void merge(const float* block, Factors factors, int64_t stride, float* out) {
  const F32 d;
  const VF32 old = hn::Set(d, factors.old), fresh = hn::Set(d, factors.block);
  for (int64_t dim = 0; dim < stride; dim += kLanes) {
    const VF32 before = hn::Mul(hn::LoadU(d, out + dim), old);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, block + dim), fresh, before), d, out + dim);
  }
}

// A block of positions, of which the row of the largest context sees `count`.
template <typename E>
struct Block {
  Spans<E> keys, values;
  int64_t begin, count;
};

// Memory of kTileRows rows: scores [kTileRows, kBlock], sums [kTileRows, stride].
struct TileMemory {
  float *scores, *sums;
};

// Contexts of rows never decrease. `stride`: of q, out and sums, a multiple of 16.
template <typename E, int kRows>
HWY_NOINLINE void attend_rows(const Block<E>& block, const float* q, int64_t stride,
                              int64_t head_dim, float scale, const TileMemory& memory, Row* rows,
                              float* out) {
  score<E, kRows>(block.keys, block.count, q, stride, head_dim, memory.scores);
  const auto count_of = [&](int i) { return std::min(kBlock, rows[i].context - block.begin); };
  Factors factors[kRows];
  for (int i = 0; i < kRows; ++i) {
    factors[i] = softmax_step(memory.scores + i * kBlock, count_of(i), scale, rows[i]);
  }
  // A position behind a row's own adds nothing, not even a zero times what may be infinite.
  const int64_t common = count_of(0);
  add_values<E, kRows>(block.values, 0, common, memory.scores, memory.sums, stride);
  for (int i = 0; i < kRows; ++i) {
    float* sums = memory.sums + i * stride;
    if (count_of(i) > common) {
      add_values<E, 1>(block.values, common, count_of(i), memory.scores + i * kBlock, sums, stride);
    }
    merge(sums, factors[i], stride, out + i * stride);
  }
}

template <typename E, int kRows = kTileRows>
HWY_INLINE void attend_some(int64_t num, const Block<E>& block, const float* q, int64_t stride,
                            int64_t head_dim, float scale, const TileMemory& memory, Row* rows,
                            float* out) {
  if (num >= kRows) {
    attend_rows<E, kRows>(block, q, stride, head_dim, scale, memory, rows, out);
  } else if constexpr (kRows > 1) {
    attend_some<E, kRows - 1>(num, block, q, stride, head_dim, scale, memory, rows, out);
  }
}

template <typename E>
void attend_block(int64_t num, const Block<E>& block, const float* q, int64_t stride,
                  int64_t head_dim, float scale, const TileMemory& memory, Row* rows, float* out) {
  for (int64_t i = 0; i < num; i += kTileRows) {
    attend_some<E>(num - i, block, q + i * stride, stride, head_dim, scale, memory, rows + i,
                   out + i * stride);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::paged::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
