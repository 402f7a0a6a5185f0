#include "skein/base/numbers/philox.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, MatchesTheReferenceForAllZeros) {
  // key 0, counter 0; the purpose occupies the top bits of the last counter word, so cancel it.
  const Philox philox(0, static_cast<RandomPurpose>(0), 0, 0);
  EXPECT_EQ(philox.block(0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, MatchesTheReferenceForAllOnes) {
  const Philox philox(~uint64_t{0}, static_cast<RandomPurpose>(0), 0xffffffff, 0xffffffff);
  EXPECT_EQ(philox.block(~uint64_t{0}),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, NormalsHaveMeanZeroAndVarianceOne) {
  const Philox philox(7, RandomPurpose::kInitialize, 3, 0);
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = philox.normal(i);
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.01);
}

TEST(Philox, LogarithmAndAnglesAreThoseOfTheLibrary) {
  constexpr double kTurn = 6.283185307179586;
  for (uint32_t i = 1; i <= 1u << 24; i += i < 1000 || i > (1u << 24) - 1000 ? 1 : 37) {
    const float u = static_cast<float>(i) * 0x1p-24f;
    const double log = std::log(static_cast<double>(u));
    ASSERT_NEAR(log_of_uniform(u), log, 1e-7 * std::abs(log)) << u;
    const auto [cosine, sine] = cos_sin_of_turn(u);
    ASSERT_NEAR(cosine, std::cos(kTurn * u), 1e-7) << u;
    ASSERT_NEAR(sine, std::sin(kTurn * u), 1e-7) << u;
  }
}

TEST(Philox, PurposesAreDifferentStreams) {
  EXPECT_NE(Philox(1, RandomPurpose::kInitialize, 0, 0).word(0),
            Philox(1, RandomPurpose::kStochasticRounding, 0, 0).word(0));
}

}  // namespace
}  // namespace skein
