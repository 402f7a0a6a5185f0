// Counter-based random numbers: a draw is a pure function of its key, so it belongs to the element
// that it is drawn for and not to the rank, thread or moment that draws it.
//
// Formula  Philox4x32-10: ten rounds of two 32x32->64 multiplications and a key schedule
// Cost     about 40 integer operations for four 32-bit words
// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace skein {

// What a draw is for; keeps streams apart that share a seed and a counter.
enum class RandomPurpose : uint32_t {
  kInitialize = 1,          // initial weights
  kStochasticRounding = 2,  // bf16 weight updates
  kMomentRounding = 3,      // bf16 optimizer moments
  kDataOrder = 4,           // permutation of corpus blocks
  kSampling = 5,            // text generation
};

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // `stream` tells parameters (or lanes) apart, `step` training steps.
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

  // Standard normals of the four elements of block `index` (Box-Muller on each pair of words).
  std::array<float, 4> normals(uint64_t index) const {
    const Block words = block(index);
    std::array<float, 4> result;
    for (int pair = 0; pair < 4; pair += 2) {
      const float radius = std::sqrt(-2.0f * std::log(to_uniform(words[pair])));
      const float angle = 6.2831853071795864f * to_uniform(words[pair + 1]);
      result[pair] = radius * std::cos(angle);
      result[pair + 1] = radius * std::sin(angle);
    }
    return result;
  }
  float normal(uint64_t index) const { return normals(index / 4)[index % 4]; }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> high_;
};

}  // namespace skein
