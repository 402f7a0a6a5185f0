#include "skein/embed/pooling.h"

#include <gmock/gmock.h>

namespace skein {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

// Three tokens of two elements.
const std::vector<float> kHidden = {1, -2, 3, 5, -4, 6};

std::vector<float> pooled(Pooling pooling, size_t dim = 2) {
  std::vector<float> out(dim);
  pool(pooling, kHidden, 2, out);
  return out;
}

TEST(Pooling, TakesOneTokenOrAll) {
  EXPECT_THAT(pooled(Pooling::kFirst), ElementsAre(1, -2));
  EXPECT_THAT(pooled(Pooling::kLast), ElementsAre(-4, 6));
  EXPECT_THAT(pooled(Pooling::kMax), ElementsAre(3, 6));
  EXPECT_THAT(pooled(Pooling::kMean), ElementsAre(0, 3));
  EXPECT_THAT(pooled(Pooling::kMax, 1), ElementsAre(3));
}

TEST(Pooling, NormalizesToLengthOne) {
  std::vector<float> vector = {3, 4};
  normalize(vector);
  EXPECT_THAT(vector, ElementsAre(FloatEq(0.6f), FloatEq(0.8f)));
  std::vector<float> zero = {0, 0};
  normalize(zero);
  EXPECT_THAT(zero, ElementsAre(0, 0));
}

}  // namespace
}  // namespace skein
