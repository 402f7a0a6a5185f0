// Tiles: packing, the matrix product of two packed panels, exp2. Included by attention_simd_cpu.cc
// for each instruction set with fp32 panels, and on x86 with bf16 panels for AVX512-BF16, and for
// a unit of tiles, whose products read whole blocks of 16 words and rows: what lies behind the last
// word of a contraction is zero.
//
//   SKEIN_ATTENTION_ATTRIBUTES  HWY_BEFORE_NAMESPACE();, or with more instructions
//   SKEIN_ATTENTION_PANELS      the namespace of these kernels
//   SKEIN_ATTENTION_BF16_DOT    1: bf16 panels, by the instructions of AVX512-BF16
//   SKEIN_ATTENTION_UNIT        the unit (ops/simd/tiles.h), with bf16 panels; not defined:
//                               vectors. AMX, and an emulated one in the test, for any
//                               instruction set
//
// A panel holds 32-bit words: one float, or two bf16 that are adjacent along the contraction.
//   left panel   [rows][contraction]     a word is broadcast
//   right panel  [contraction][columns]  a vector of words is loaded
// Source  Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008
SKEIN_ATTENTION_ATTRIBUTES
namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS {
namespace hn = hwy::HWY_NAMESPACE;

using namespace simd::HWY_NAMESPACE;  // NOLINT: F32, VF32, load, store

using Words = hn::RebindToUnsigned<F32>;
constexpr int64_t kLanes = hn::MaxLanes(F32());
#if HWY_MAX_BYTES == 64
constexpr int kTileRows = 8, kTileVectors = 2;
#else
constexpr int kTileRows = 4, kTileVectors = 3;  // 16 registers
#endif

#if SKEIN_ATTENTION_BF16_DOT
constexpr int64_t kPack = 2;
HWY_INLINE VF32 dot(VF32 sum, uint32_t left, VU32 right) {
  return VF32{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(right.raw),
                               reinterpret_cast<__m512bh>(_mm512_set1_epi32(left)))};
}
// 16 bf16 of `low`, then 16 of `high`.
HWY_INLINE __m512i round_two(VF32 low, VF32 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.raw, low.raw));
}
#elif defined(SKEIN_ATTENTION_UNIT)
constexpr int64_t kPack = 2;
#else
constexpr int64_t kPack = 1;
HWY_INLINE VF32 dot(VF32 sum, uint32_t left, VU32 right) {
  const F32 d;
  return hn::MulAdd(hn::BitCast(d, hn::Set(Words(), left)), hn::BitCast(d, right), sum);
}
#endif
constexpr int64_t kBlockWords = kBlock / kPack;

enum class Start { kZero, kLoad };

#ifdef SKEIN_ATTENTION_UNIT
constexpr int64_t kStepMultiple = tiles::kSteps;

// c[rows, columns] = start + left * right.
template <Start kStart>
HWY_NOINLINE void product(int64_t rows, int64_t columns, int64_t steps, const uint32_t* left,
                          int64_t left_stride, const uint32_t* right, int64_t right_stride,
                          float* c, int64_t c_stride) {
  const tiles::Left a{reinterpret_cast<const char*>(left), left_stride * 4, tiles::kBytes};
  tiles::add_product<SKEIN_ATTENTION_UNIT>(
      rows, columns, a, tiles::right_of_rows(right, right_stride), round_up(steps, tiles::kSteps),
      kStart == Start::kZero, c, c_stride);
}

// Around all products of a unit of work.
struct Unit {
  Unit() { SKEIN_ATTENTION_UNIT::begin(); }
  ~Unit() { SKEIN_ATTENTION_UNIT::end(); }
};
#else
constexpr int64_t kStepMultiple = 1;
struct Unit {
  Unit() {}  // NOLINT(modernize-use-equals-default): not an unused variable
};

// c[kRows, kVecs vectors] = start + left * right, over `steps` words.
template <Start kStart, int kRows, int kVecs>
HWY_INLINE void product_tile(int64_t steps, const uint32_t* HWY_RESTRICT left, int64_t left_stride,
                             const uint32_t* HWY_RESTRICT right, int64_t right_stride,
                             float* HWY_RESTRICT c, int64_t c_stride) {
  const F32 d;
  VF32 sums[kRows][kVecs];
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      sums[row][vec] = hn::Zero(d);
      if constexpr (kStart == Start::kLoad) {
        sums[row][vec] = hn::Load(d, c + row * c_stride + vec * kLanes);
      }
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    VU32 words[kVecs];
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      words[vec] = hn::Load(Words(), right + step * right_stride + vec * kLanes);
    }
    SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
      const uint32_t word = left[row * left_stride + step];
      SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
        sums[row][vec] = dot(sums[row][vec], word, words[vec]);
      }
    }
  }
  SKEIN_UNROLL for (int row = 0; row < kRows; ++row) {
    SKEIN_UNROLL for (int vec = 0; vec < kVecs; ++vec) {
      hn::Store(sums[row][vec], d, c + row * c_stride + vec * kLanes);
    }
  }
}

// The same for up to kRows rows.
template <Start kStart, int kRows, int kVecs>
HWY_INLINE void product_rows(int64_t rows, int64_t steps, const uint32_t* left, int64_t left_stride,
                             const uint32_t* right, int64_t right_stride, float* c,
                             int64_t c_stride) {
  if (rows >= kRows) {
    product_tile<kStart, kRows, kVecs>(steps, left, left_stride, right, right_stride, c, c_stride);
  } else if constexpr (kRows > 1) {
    product_rows<kStart, kRows - 1, kVecs>(rows, steps, left, left_stride, right, right_stride, c,
                                           c_stride);
  }
}

template <Start kStart, int kVecs>
HWY_INLINE void product_columns(int64_t rows, int64_t steps, const uint32_t* left,
                                int64_t left_stride, const uint32_t* right, int64_t right_stride,
                                float* c, int64_t c_stride) {
  for (int64_t row = 0; row < rows; row += kTileRows) {
    product_rows<kStart, kTileRows, kVecs>(rows - row, steps, left + row * left_stride, left_stride,
                                           right, right_stride, c + row * c_stride, c_stride);
  }
}

// c[rows, columns] = start + left * right. `columns` is a multiple of kLanes.
template <Start kStart>
HWY_NOINLINE void product(int64_t rows, int64_t columns, int64_t steps, const uint32_t* left,
                          int64_t left_stride, const uint32_t* right, int64_t right_stride,
                          float* c, int64_t c_stride) {
  int64_t col = 0;
  for (; columns - col >= kTileVectors * kLanes; col += kTileVectors * kLanes) {
    product_columns<kStart, kTileVectors>(rows, steps, left, left_stride, right + col, right_stride,
                                          c + col, c_stride);
  }
  if constexpr (kTileVectors > 2) {
    if (columns - col >= 2 * kLanes) {
      product_columns<kStart, 2>(rows, steps, left, left_stride, right + col, right_stride, c + col,
                                 c_stride);
      col += 2 * kLanes;
    }
  }
  if (col < columns) {
    product_columns<kStart, 1>(rows, steps, left, left_stride, right + col, right_stride, c + col,
                               c_stride);
  }
}
#endif

// Steps [steps, the next multiple) of a right panel of kBlock columns become zero.
inline void fill_steps(uint32_t* panel, int64_t steps) {
  std::fill(panel + steps * kBlock, panel + round_up(steps, kStepMultiple) * kBlock, 0u);
}

// 2^x; 0 far below 0, and NaN stays NaN.
#if SKEIN_ATTENTION_BF16_DOT || defined(SKEIN_ATTENTION_UNIT)
HWY_INLINE VF32 exp2(VF32 x) { return coarse_exp2(x); }
#else
// To 1.5 ulp for x < 127; 0 below -125. The polynomial of degree 6 interpolates (2^f - 1) / f at
// the Chebyshev nodes of |f| <= 1/2.
HWY_INLINE VF32 exp2(VF32 x) {
  const F32 d;
  const VF32 magic = hn::Set(d, 0x1.8p23f);  // rounds to an integer in the low bits
  const VF32 shifted = hn::Add(x, magic);
  const VF32 f = hn::Sub(x, hn::Sub(shifted, magic));
  VF32 p = hn::Set(d, 0.00015453163359779865f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.0013390863314270973f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.009618083015084267f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.055503569543361664f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022650718688965f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931471824645996f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const VU32 exponent = hn::ShiftLeft<23>(hn::BitCast(Words(), shifted));
  const VF32 result = hn::BitCast(d, hn::Add(hn::BitCast(Words(), p), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -125.0f)), result);
}
#endif

// ---- packing ----

// Copies bytes to words, and fills up with zeros. By vectors, of a size that the compiler knows.
HWY_INLINE void copy_words(const void* from, int64_t bytes, int64_t words, uint32_t* to) {
  constexpr int64_t kVectorBytes = 4 * kLanes;
  const auto* source = static_cast<const char*>(from);
  auto* at = reinterpret_cast<char*>(to);
  int64_t done = 0;
  for (; done + kVectorBytes <= bytes; done += kVectorBytes) {
    std::memcpy(at + done, source + done, kVectorBytes);
  }
  if (done < bytes) std::memcpy(at + done, source + done, bytes - done);
  if (bytes < words * 4) std::memset(at + bytes, 0, words * 4 - bytes);
}

// Rows of a head are far apart in memory, where the hardware does not see which one comes next.
constexpr int64_t kRowsAhead = 8;
template <typename T>
HWY_INLINE void fetch_row(const T* row, int64_t cols) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t col = 0; col < cols; col += kLine) prefetch(row + col);
}

// Packs rows of a matrix into a panel of kBlock rows of padded_dim elements, padded with zeros.
template <typename T>
void pack_rows(const T* from, int64_t row_stride, int64_t rows, int64_t cols, int64_t padded_cols,
               uint32_t* panel) {
  const int64_t row_words = padded_cols / kPack;
  for (int64_t row = 0; row < rows; ++row) {
    fetch_row(from + (row + kRowsAhead) * row_stride, cols);
    uint32_t* to = panel + row * row_words;
    if constexpr (kPack * sizeof(T) == sizeof(uint32_t)) {
      copy_words(from + row * row_stride, cols * static_cast<int64_t>(sizeof(T)), row_words, to);
    } else {
      for (int64_t col = 0; col < padded_cols; col += kLanes) {
        const int64_t n = std::clamp<int64_t>(cols - col, 0, kLanes);
        const VF32 value = n == 0 ? hn::Zero(F32()) : load(F32(), from + row * row_stride + col, n);
        hn::Store(hn::BitCast(Words(), value), Words(), to + col);
      }
    }
  }
  std::fill(panel + rows * row_words, panel + kBlock * row_words, 0u);
}

// Turns a panel of kBlock rows into the right panel that contracts over them: words of rows 2r and
// 2r + 1. With fp32 panels the rows already have that form.
inline void pair_rows(const uint32_t* panel, int64_t padded_cols, uint32_t* paired) {
  if constexpr (kPack == 2) {
    const U16Half half;
    const auto* rows = reinterpret_cast<const uint16_t*>(panel);
    for (int64_t pair = 0; pair < kBlock / 2; ++pair) {
      const uint16_t* even = rows + 2 * pair * padded_cols;
      for (int64_t col = 0; col < padded_cols; col += kLanes) {
        const VU32 low = hn::PromoteTo(Words(), hn::LoadU(half, even + col));
        const VU32 high = hn::PromoteTo(Words(), hn::LoadU(half, even + padded_cols + col));
        hn::Store(hn::Or(low, hn::ShiftLeft<16>(high)), Words(), paired + pair * padded_cols + col);
      }
    }
  } else {
    std::memcpy(paired, panel, kBlock * padded_cols * sizeof(uint32_t));
  }
}

// Packs rows as pack_rows and pair_rows one after the other; `rows_panel` is used in between.
template <typename T>
void pack_pairs(const T* from, int64_t row_stride, int64_t rows, int64_t cols, int64_t padded_cols,
                uint32_t* rows_panel, uint32_t* paired) {
  pack_rows(from, row_stride, rows, cols, padded_cols, kPack == 1 ? paired : rows_panel);
  if constexpr (kPack > 1) pair_rows(rows_panel, padded_cols, paired);
}

// to[cols, rows] = from[rows, cols] transposed; rows and cols are multiples of 4.
inline void transpose(const uint32_t* from, int64_t rows, int64_t cols, uint32_t* to) {
  transpose_words(from, cols, rows, cols, to, rows);
}

// Stores 2 * kLanes adjacent elements of the contraction.
HWY_INLINE void store_words(VF32 low, VF32 high, uint32_t* to) {
#if SKEIN_ATTENTION_BF16_DOT
  _mm512_store_si512(to, round_two(low, high));
#else
  if constexpr (kPack == 2) {
    store(low, F32(), reinterpret_cast<bfloat16*>(to), kLanes);
    store(high, F32(), reinterpret_cast<bfloat16*>(to) + kLanes, kLanes);
  } else {
    hn::Store(hn::BitCast(Words(), low), Words(), to);
    hn::Store(hn::BitCast(Words(), high), Words(), to + kLanes);
  }
#endif
}

// Stores kPack rows of a tile, 2 * kLanes columns at `col`, in the left panel that contracts over
// columns, of `stride` words a row.
HWY_INLINE void store_left(const VF32 (&tile)[kPack][2], int64_t row, int64_t col, uint32_t* left,
                           int64_t stride) {
  for (int64_t i = 0; i < kPack; ++i) {
    store_words(tile[i][0], tile[i][1], left + (row + i) * stride + col / kPack);
  }
}

// The same in the right panel [rows / kPack][kBlock] that contracts over rows; with fp32 panels
// that is the left one.
HWY_INLINE void store_right(const VF32 (&tile)[kPack][2], int64_t row, int64_t col,
                            uint32_t* right) {
#if SKEIN_ATTENTION_BF16_DOT
  alignas(64) static constexpr uint16_t kInterleave[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i order = _mm512_load_si512(kInterleave);
  uint32_t* to = right + row / 2 * kBlock + col;
  for (int i = 0; i < 2; ++i) {
    const __m512i words = round_two(tile[0][i], tile[1][i]);
    _mm512_store_si512(to + i * kLanes, _mm512_permutexvar_epi16(order, words));
  }
#else
  if constexpr (kPack == 1) return;
  for (int i = 0; i < 2; ++i) {
    const VU32 even = round_to_bf16(tile[0][i]), odd = round_to_bf16(tile[kPack - 1][i]);
    const VU32 words = hn::Or(hn::ShiftRight<16>(even), hn::And(odd, hn::Set(Words(), 0xffff0000)));
    hn::Store(words, Words(), right + row / kPack * kBlock + col + i * kLanes);
  }
#endif
}

// Which of two positions may not be later than the other.
enum class Causal { kNone, kRowsAreQueries, kRowsAreKeys };

// Sets the scores [rows, columns], of kBlock a row, of pairs that may not see each other to
// -infinity.
inline void mask_scores(const int32_t* row_starts, const int32_t* column_starts, int64_t rows,
                        int64_t columns, int64_t first_row, int64_t first_column, Causal causal,
                        float* scores) {
  const hn::RebindToSigned<F32> i32;
  for (int64_t row = 0; row < rows; ++row) {
    const auto row_start = hn::Set(i32, row_starts[row]);
    const auto at_row = static_cast<int32_t>(first_row + row - first_column);
    const auto earliest = hn::Set(i32, causal == Causal::kRowsAreKeys ? at_row : 0);
    const auto latest =
        hn::Set(i32, causal == Causal::kRowsAreQueries ? at_row : static_cast<int32_t>(kBlock));
    for (int64_t col = 0; col < columns; col += kLanes) {
      const auto column = hn::Iota(i32, static_cast<int32_t>(col));
      const auto start = hn::LoadU(i32, column_starts + col);
      const auto hidden = hn::Or(hn::VecFromMask(i32, hn::Ne(start, row_start)),
                                 hn::Or(hn::VecFromMask(i32, hn::Lt(column, earliest)),
                                        hn::VecFromMask(i32, hn::Gt(column, latest))));
      float* at = scores + row * kBlock + col;
      const VF32 value = hn::Load(F32(), at);
      hn::Store(hn::IfThenElse(hn::RebindMask(F32(), hn::MaskFromVec(hidden)),
                               hn::Set(F32(), -std::numeric_limits<float>::infinity()), value),
                F32(), at);
    }
  }
}

}  // namespace skein::attention_cpu::HWY_NAMESPACE::SKEIN_ATTENTION_PANELS
HWY_AFTER_NAMESPACE();
