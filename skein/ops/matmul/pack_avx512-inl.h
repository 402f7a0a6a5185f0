// How the AVX-512 paths pack their operands. Included by matmul_avx512.cc alone, inside its
// namespace, where the instructions are enabled.

constexpr int kVectors = 4;
constexpr int kPanelCols = 16 * kVectors;
constexpr int64_t kPrefetchRows = 16;
constexpr int64_t kBytesAhead = 64;  // of a row: the next step's

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline __mmask16 mask16(int64_t count) {
  return count >= 16 ? 0xffff : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1);
}
inline __mmask32 mask32(int64_t count) {
  return count >= 32 ? 0xffffffffu : count <= 0 ? 0 : (1u << count) - 1;
}

struct F32 {
  static constexpr int kElementsAStep = 1;
  static constexpr int kBytes = 4;
  // Up to 16 steps of one lane whose summed dim is the inner one.
  static __m512i load_steps(const char* from, int64_t depth) {
    return _mm512_maskz_loadu_epi32(mask16(depth), from);
  }
  static __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};

struct BF16 {
  static constexpr int kElementsAStep = 2;
  static constexpr int kBytes = 2;
  static __m512i load_steps(const char* from, int64_t depth) {
    return _mm512_maskz_loadu_epi16(mask32(depth), from);
  }
  static __m512 multiply_add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};

// rows[i][j] <- rows[j][i], 32-bit words.
inline void transpose_words(__m512i rows[16]) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    rows[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Where a panel of kWidth lanes has a step of a lane, the first of 16: row by row, or in tiles of
// 16 steps and lanes.
template <int kWidth>
struct InRows {
  static int64_t at(int64_t step, int64_t lane) { return step * kWidth + lane; }
};
template <int kWidth>
struct InTiles {
  static int64_t at(int64_t step, int64_t lane) {
    return step / 16 * 16 * kWidth + lane * 16 + step % 16 * 16;
  }
};

// Packs a B whose summed dim is the inner one: 16 x 16 words are transposed at a time.
template <typename T, typename Layout>
void pack_b_inner(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
                  int64_t panel_words) {
  const int64_t steps = (depth + T::kElementsAStep - 1) / T::kElementsAStep;
  const char* data = static_cast<const char*>(b.data);
  for (int64_t lane = 0; lane < lanes; lane += kPanelCols, panels += panel_words) {
    for (int64_t step = 0; step < steps; step += 16) {
      const int64_t element = step * T::kElementsAStep;
      for (int group = 0; group < kPanelCols; group += 16) {
        __m512i words[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          const int64_t col = lane + group + i;
          const char* at = data + (col * b.row_stride + element) * T::kBytes;
          _mm_prefetch(at + kBytesAhead, _MM_HINT_T0);
          words[i] = col < lanes ? T::load_steps(at, depth - element) : _mm512_setzero_si512();
        }
        transpose_words(words);
        const int64_t count = smaller(16, steps - step);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          if (i < count) _mm512_storeu_si512(panels + Layout::at(step + i, group), words[i]);
        }
      }
    }
  }
}

template <int kWidth>
void pack_outer_f32(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
                    int64_t panel_words) {
  for (int64_t k = 0; k < depth; ++k) {
    const float* row = static_cast<const float*>(b.data) + k * b.row_stride;
    uint32_t* to = panels + k * kWidth;
    for (int64_t lane = 0; lane < lanes; lane += kWidth, to += panel_words) {
      for (int64_t i = 0; i < kWidth; i += 16) {
        const __mmask16 mask = mask16(lanes - lane - i);
        _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi32(mask, row + lane + i));
      }
    }
  }
}

template <int kWidth, typename Layout>
void pack_outer_bf16(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
                     int64_t panel_words) {
  // Words i of two rows side by side: 0, 32, 1, 33, ...
  const __m512i low = _mm512_or_si512(
      _mm512_cvtepu16_epi32(_mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)),
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_set_epi16(47, 46, 45, 44, 43, 42, 41, 40, 39,
                                                               38, 37, 36, 35, 34, 33, 32)),
                        16));
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  for (int64_t k = 0; k < depth; k += 2) {
    const uint16_t* first = static_cast<const uint16_t*>(b.data) + k * b.row_stride;
    const bool has_second = k + 1 < depth;
    const uint16_t* second = has_second ? first + b.row_stride : first;
    const uint16_t* ahead = first + kPrefetchRows * b.row_stride;
    uint32_t* to = panels;
    for (int64_t lane = 0; lane < lanes; lane += kWidth, to += panel_words) {
      for (int64_t i = 0; i < kWidth; i += 32) {
        const __mmask32 mask = mask32(lanes - lane - i);
        _mm_prefetch(reinterpret_cast<const char*>(ahead + lane + i), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(ahead + b.row_stride + lane + i), _MM_HINT_T0);
        const __m512i x = _mm512_maskz_loadu_epi16(mask, first + lane + i);
        const __m512i y = _mm512_maskz_loadu_epi16(has_second ? mask : 0, second + lane + i);
        _mm512_storeu_si512(to + Layout::at(k / 2, i), _mm512_permutex2var_epi16(x, low, y));
        _mm512_storeu_si512(to + Layout::at(k / 2, i + 16), _mm512_permutex2var_epi16(x, high, y));
      }
    }
  }
}

template <typename T, int kWidth>
void pack_outer(const MatmulOperand& from, int64_t depth, int64_t lanes, uint32_t* panels,
                int64_t panel_words) {
  if constexpr (T::kElementsAStep == 1) {
    pack_outer_f32<kWidth>(from, depth, lanes, panels, panel_words);
  } else {
    pack_outer_bf16<kWidth, InRows<kWidth>>(from, depth, lanes, panels, panel_words);
  }
}

template <typename T>
void pack_b(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  if (b.depth_is_row) return pack_outer<T, kPanelCols>(b, depth, lanes, panels, panel_words);
  pack_b_inner<T, InRows<kPanelCols>>(b, depth, lanes, panels, panel_words);
}

// Only used if the summed dim is odd, so that pairs are not adjacent; speed does not matter.
void pack_a_inner_bf16(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
                       int64_t panel_words) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const uint16_t* row = static_cast<const uint16_t*>(a.data) + lane * a.row_stride;
    uint32_t* to = panels + lane / kMatmulPanelRows * panel_words + lane % kMatmulPanelRows;
    for (int64_t k = 0; k < depth; k += 2, to += kMatmulPanelRows) {
      *to = row[k] | (k + 1 < depth ? static_cast<uint32_t>(row[k + 1]) << 16 : 0);
    }
  }
}

template <typename T>
void pack_a(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
            int64_t panel_words) {
  if (a.depth_is_row) return pack_outer<T, kMatmulPanelRows>(a, depth, lanes, panels, panel_words);
  pack_a_inner_bf16(a, depth, lanes, panels, panel_words);
}

// Steps in blocks of 16 (MatmulKernel::block_steps): of pairs, with zeros where the last block has
// none.
constexpr int kBlockSteps = 16;
// Of A: all steps of a tile's rows lie one behind the other.
constexpr int kBlockPanelRows = tiles::kTileRows;

void pack_b_blocks(const MatmulOperand& b, int64_t depth, int64_t lanes, uint32_t* panels,
                   int64_t panel_words) {
  using Layout = InTiles<kPanelCols>;
  const auto pack =
      b.depth_is_row ? pack_outer_bf16<kPanelCols, Layout> : pack_b_inner<BF16, Layout>;
  pack(b, depth, lanes, panels, panel_words);
  const int64_t steps = (depth + 1) / 2;
  for (int64_t step = steps; step % kBlockSteps != 0; ++step) {
    for (int64_t panel = 0; panel * kPanelCols < lanes; ++panel) {
      for (int64_t lane = 0; lane < kPanelCols; lane += 16) {
        _mm512_storeu_si512(panels + panel * panel_words + Layout::at(step, lane),
                            _mm512_setzero_si512());
      }
    }
  }
}

// Words of 16 lanes (`rows` of which are there) and 16 steps, whose summed dim is the outer one.
inline void load_outer_block(const MatmulOperand& a, int64_t lane, __mmask16 lanes, int64_t k,
                             int64_t depth, __m512i words[16]) {
  const uint16_t* data = static_cast<const uint16_t*>(a.data) + lane;
#pragma GCC unroll 16
  for (int step = 0; step < kBlockSteps; ++step) {
    const int64_t first = k + 2 * step;
    const __mmask16 has_first = first < depth ? lanes : 0;
    const __mmask16 has_second = first + 1 < depth ? lanes : 0;
    const uint16_t* row = data + first * a.row_stride;
    const __m256i low = _mm256_maskz_loadu_epi16(has_first, row);
    const __m256i high = _mm256_maskz_loadu_epi16(has_second, row + a.row_stride);
    words[step] = _mm512_or_si512(_mm512_cvtepu16_epi32(low),
                                  _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
  }
  transpose_words(words);
}

void pack_a_blocks(const MatmulOperand& a, int64_t depth, int64_t lanes, uint32_t* panels,
                   int64_t panel_words) {
  const int64_t all_lanes = (lanes + kBlockPanelRows - 1) / kBlockPanelRows * kBlockPanelRows;
  for (int64_t k = 0; k < depth; k += 2 * kBlockSteps) {
    for (int64_t lane = 0; lane < all_lanes; lane += 16) {
      __m512i words[16];
      const __mmask16 mask = mask16(lanes - lane);
      if (a.depth_is_row) {
        load_outer_block(a, lane, mask, k, depth, words);
      } else {
        const uint16_t* data = static_cast<const uint16_t*>(a.data) + k;
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          const __mmask32 there = (mask >> i & 1) != 0 ? mask32(depth - k) : 0;
          words[i] = _mm512_maskz_loadu_epi16(there, data + (lane + i) * a.row_stride);
        }
      }
      uint32_t* to = panels + lane / kBlockPanelRows * panel_words + k / 2 * kBlockPanelRows +
                     lane % kBlockPanelRows * kBlockSteps;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kBlockSteps, words[i]);
    }
  }
}
