// Counter-based random numbers: a draw is a pure function of its key, so it belongs to the element
// that it is drawn for and not to the rank, thread or moment that draws it.
//
// Formula  Philox4x32-10: ten rounds of two 32x32->64 multiplications and a key schedule
//          normals: Box-Muller on pairs of words, with a logarithm, sine and cosine of our own:
//          within 1e-7 of the exact ones, and the same bits whatever the C library
// Cost     about 40 integer operations for four 32-bit words
// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the polynomials
//          are Cephes' (Moshier), logf and sinf
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace skein {

// The purpose of a draw: it separates streams that share a seed and a counter.
enum class RandomPurpose : uint32_t {
  kInitialize = 1,          // initial weights
  kStochasticRounding = 2,  // bf16 weight updates
  kMomentRounding = 3,      // bf16 optimizer moments
  kDataOrder = 4,           // permutation of corpus blocks
  kSampling = 5,            // text generation
  kMixture = 6,             // with which corpus a lane begins
  kMasking = 7,             // which tokens a masked language model must find
};

// The natural logarithm of u in (0, 1].
inline float log_of_uniform(float u) {
  constexpr int32_t kSqrtHalf =
      0x3F3504F3;  // its bits; the mantissa is taken from [sqrt(1/2), sqrt(2))
  const int32_t bits = std::bit_cast<int32_t>(u) - kSqrtHalf;
  const float x = std::bit_cast<float>((bits & 0x7FFFFF) + kSqrtHalf) - 1.0f;
  const auto exponent = static_cast<float>(bits >> 23);
  float p = 7.0376836292e-2f;
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = p * x + c;
  }
  const float xx = x * x;
  return x + (p * x * xx + -2.12194440e-4f * exponent + -0.5f * xx) + 0.693359375f * exponent;
}

struct CosSin {
  float cosine, sine;
};
// Cosine and sine of the angle 2 pi u, u in [0, 1], by quadrants; subtracting the quadrant is
// exact.
inline CosSin cos_sin_of_turn(float u) {
  const float quarters = 4.0f * u;
  const auto quadrant = static_cast<int32_t>(quarters + 0.5f);
  const float x = 1.57079632679f * (quarters - static_cast<float>(quadrant)), xx = x * x;
  const float s = ((-1.9515295891e-4f * xx + 8.3321608736e-3f) * xx + -1.6666654611e-1f) * xx;
  const float c =
      (2.443315711809948e-5f * xx + -1.388731625493765e-3f) * xx + 4.166664568298827e-2f;
  const float sine = s * x + x, cosine = c * xx * xx + -0.5f * xx + 1.0f;
  const bool is_swapped = (quadrant & 1) != 0;
  const auto with_sign = [](float value, int32_t bit) {  // only the second bit counts
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^
                                (static_cast<uint32_t>(bit & 2) << 30));
  };
  return {with_sign(is_swapped ? sine : cosine, quadrant + 1),
          with_sign(is_swapped ? cosine : sine, quadrant)};
}

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // `stream` separates parameters (or lanes), `step` training steps.
  constexpr Philox(uint64_t seed, RandomPurpose purpose, uint32_t stream, uint32_t step)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        high_{stream, step ^ (static_cast<uint32_t>(purpose) << 28)} {}

  // The four words of block `index`: elements 4*index .. 4*index+3 of the stream.
  constexpr Block block(uint64_t index) const {
    Block counter{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), high_[0],
                  high_[1]};
    uint32_t key0 = key_[0], key1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
      counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
                 static_cast<uint32_t>(product1),
                 static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
                 static_cast<uint32_t>(product0)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    return counter;
  }

  // The 32-bit word of element `index`.
  constexpr uint32_t word(uint64_t index) const { return block(index / 4)[index % 4]; }

  // Uniform in (0, 1], never 0.
  static constexpr float to_uniform(uint32_t word) {
    return (static_cast<float>(word >> 8) + 1.0f) * 0x1p-24f;
  }

  // Standard normals of the four elements of block `index`; ops/simd/normals_cpu.h draws many.
  std::array<float, 4> normals(uint64_t index) const {
    const Block words = block(index);
    std::array<float, 4> result;
    for (int pair = 0; pair < 4; pair += 2) {
      const float radius = std::sqrt(-2.0f * log_of_uniform(to_uniform(words[pair])));
      const auto [cosine, sine] = cos_sin_of_turn(to_uniform(words[pair + 1]));
      result[pair] = radius * cosine;
      result[pair + 1] = radius * sine;
    }
    return result;
  }
  float normal(uint64_t index) const { return normals(index / 4)[index % 4]; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> high_;
};

}  // namespace skein
