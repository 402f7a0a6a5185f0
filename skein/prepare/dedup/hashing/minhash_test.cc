#include "skein/prepare/dedup/hashing/minhash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace skein {
namespace {

std::vector<uint32_t> signature_of(const std::vector<uint64_t>& ngrams,
                                   const MinHashOptions& options) {
  MinHasher hasher(options);
  for (const uint64_t ngram : ngrams) hasher.add(ngram);
  const auto signature = hasher.signature();
  return {signature.begin(), signature.end()};
}

// Two sets of `size` random elements of which `num_common` are in both.
std::pair<std::vector<uint64_t>, std::vector<uint64_t>> sets(std::mt19937_64& random, size_t size,
                                                             size_t num_common) {
  std::vector<uint64_t> a(size), b(size);
  std::generate(a.begin(), a.end(), std::ref(random));
  std::generate(b.begin(), b.end(), std::ref(random));
  std::copy_n(a.begin(), num_common, b.begin());
  std::shuffle(b.begin(), b.end(), random);
  return {a, b};
}

TEST(MinHash, IsTheFormula) {
  // minhash.h, element by element.
  const MinHashOptions options{5, 3, 7, 9};
  std::mt19937_64 random(1);
  std::vector<uint64_t> ngrams(3000);
  std::generate(ngrams.begin(), ngrams.end(), std::ref(random));
  uint64_t state = options.seed;
  const auto draw = [&state] {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  };
  std::vector<uint32_t> wanted;
  for (int i = 0; i < 21; ++i) {
    const uint64_t ac = draw();
    const auto a = static_cast<uint32_t>(ac) | 1, c = static_cast<uint32_t>(ac >> 32) | 1;
    const auto b = static_cast<uint32_t>(draw());
    uint32_t least = UINT32_MAX;
    for (const uint64_t x : ngrams) {
      const uint32_t y = a * static_cast<uint32_t>(x) + b;
      least = std::min(least, c * (y ^ y >> 15 ^ static_cast<uint32_t>(x >> 32)));
    }
    wanted.push_back(least);
  }
  EXPECT_EQ(signature_of(ngrams, options), wanted);
}

// The share of positions in which two signatures agree estimates the Jaccard similarity: without
// bias, and with the variance of independent hashes, J (1 - J) / 112.
TEST(MinHash, EstimatesJaccardAsIndependentHashesWould) {
  std::mt19937_64 random(2);
  const MinHashOptions options;
  constexpr int kNumPairs = 1500;
  for (const size_t size : {12, 300}) {
    for (const double share : {0.25, 0.5, 0.75, 0.9}) {
      const auto num_common = static_cast<size_t>(share * static_cast<double>(size));
      const double jaccard =
          static_cast<double>(num_common) / static_cast<double>(2 * size - num_common);
      double sum = 0, squares = 0;
      for (int pair = 0; pair < kNumPairs; ++pair) {
        const auto [a, b] = sets(random, size, num_common);
        const auto of_a = signature_of(a, options), of_b = signature_of(b, options);
        double agree = 0;
        for (size_t i = 0; i < of_a.size(); ++i) agree += of_a[i] == of_b[i] ? 1 : 0;
        const double error = agree / static_cast<double>(of_a.size()) - jaccard;
        sum += error, squares += error * error;
      }
      const double variance = jaccard * (1 - jaccard) / 112;
      EXPECT_NEAR(sum / kNumPairs, 0, 4 * std::sqrt(variance / kNumPairs)) << size << " " << share;
      EXPECT_NEAR(squares / kNumPairs / variance, 1, 0.15) << size << " " << share;
    }
  }
}

TEST(MinHash, PairsMeetAsOftenAsTheCurveSays) {
  std::mt19937_64 random(3);
  const MinHashOptions options;
  constexpr int kNumPairs = 1500;
  for (const size_t num_common : {134, 151, 165, 178}) {  // of 200: J 0.50, 0.61, 0.70, 0.80
    const double jaccard = static_cast<double>(num_common) / static_cast<double>(400 - num_common);
    int num_met = 0;
    for (int pair = 0; pair < kNumPairs; ++pair) {
      const auto [a, b] = sets(random, 200, num_common);
      MinHasher hash_a(options), hash_b(options);
      for (const uint64_t x : a) hash_a.add(x);
      for (const uint64_t x : b) hash_b.add(x);
      std::vector<uint64_t> of_a, of_b;
      hash_a.append_keys(of_a), hash_b.append_keys(of_b);
      ASSERT_EQ(of_a.size(), 14u);
      bool met = false;
      for (size_t i = 0; i < of_a.size(); ++i) met = met || of_a[i] == of_b[i];
      num_met += met ? 1 : 0;
    }
    const double wanted = meeting_probability(options, jaccard);
    EXPECT_NEAR(num_met / double{kNumPairs}, wanted,
                4 * std::sqrt(wanted * (1 - wanted) / kNumPairs))
        << jaccard;
  }
  EXPECT_NEAR(meeting_probability(options, 0.8), 0.924, 0.0005);  // as datatrove says
}

TEST(NgramHasher, RollsOverWords) {
  NgramHasher rolling(3), once(3);
  std::vector<uint64_t> hashes;
  for (const uint64_t word : {5, 6, 7, 8, 9}) {
    if (const auto hash = rolling.push(word)) hashes.push_back(*hash);
  }
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_FALSE(rolling.short_text());
  EXPECT_FALSE(once.push(7));
  EXPECT_FALSE(once.push(8));
  EXPECT_EQ(once.push(9), hashes[2]);
  rolling.begin();
  EXPECT_FALSE(rolling.short_text());
  EXPECT_FALSE(rolling.push(7));
  EXPECT_FALSE(rolling.push(8));
  EXPECT_TRUE(rolling.short_text());
  EXPECT_EQ(rolling.push(9), hashes[2]);
}

}  // namespace
}  // namespace skein
