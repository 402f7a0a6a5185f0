// The inner loop of MinHash, for whatever vectors the processor has; minhash.h has the formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace skein {

inline constexpr size_t kMinHashPadding = 16;  // the number of hashes is a multiple of it

struct MinHashFactors {
  const uint32_t *a, *b, *c;  // as many as there are hashes
};

// minima[i] = min(minima[i], h_i(x)) over all x of `ngrams`.
void take_minima(std::span<const uint64_t> ngrams, const MinHashFactors& factors,
                 std::span<uint32_t> minima);

}  // namespace skein
