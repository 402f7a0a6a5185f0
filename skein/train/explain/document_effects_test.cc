#include "skein/train/explain/document_effects.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace skein {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

DocumentEffect effect(int64_t document, int64_t labels, double loss, float grad_norm) {
  return {.place = {.document = document},
          .num_labels = labels,
          .text = std::string(static_cast<size_t>(3 * labels), 'x'),
          .loss = loss,
          .grad_norm = grad_norm,
          .shuffled_loss = loss + 3};
}

std::vector<int64_t> ranked(std::vector<DocumentEffect> documents) {
  rank_documents(documents);
  std::vector<int64_t> order;
  for (const DocumentEffect& document : documents) order.push_back(document.place.document);
  return order;
}

std::vector<DocumentEffect> clean() {
  return {effect(0, 100, 2.0, 1.0f), effect(1, 90, 2.1, 1.1f), effect(2, 110, 1.9, 0.9f),
          effect(3, 100, 2.05, 1.05f), effect(4, 95, 1.95, 0.95f)};
}

TEST(DocumentEffects, WhatLosesNothingInRandomOrderComesFirst) {
  auto documents = clean();
  documents.push_back(effect(7, 100, 2.0, 1.0f));
  documents.back().shuffled_loss = 2.0;
  EXPECT_EQ(ranked(documents).front(), 7);
}

TEST(DocumentEffects, ALargeLossOrALargeGradientComesFirst) {
  auto documents = clean();
  documents.push_back(effect(7, 100, 6.0, 1.0f));
  EXPECT_EQ(ranked(documents).front(), 7);
  documents.back() = effect(8, 100, 2.0, 9.0f);
  EXPECT_EQ(ranked(documents).front(), 8);
}

// Noise that takes a token for each byte has many tokens of a moderate loss.
TEST(DocumentEffects, ManyBitsForLittleTextComeFirst) {
  auto documents = clean();
  documents.push_back(effect(7, 100, 2.0, 1.0f));
  EXPECT_NE(ranked(documents).front(), 7);
  documents.back().text.resize(100);
  EXPECT_EQ(ranked(documents).front(), 7);
  rank_documents(documents);
  EXPECT_NEAR(documents[0].bits_per_byte, 2.0 / std::log(2.0), 1e-9);
}

// Three tokens scatter more than a hundred: they do not stand out by as much.
TEST(DocumentEffects, FewTokensCountForLess) {
  auto documents = clean();
  documents.push_back(effect(7, 100, 4.0, 1.0f));
  documents.push_back(effect(8, 3, 5.0, 5.0f));
  EXPECT_EQ(ranked(documents).front(), 7);
}

TEST(DocumentEffects, WhatIsNotFiniteComesFirst) {
  auto documents = clean();
  documents.push_back(effect(7, 100, 9.0, 9.0f));
  documents.push_back(effect(8, 100, kNan, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(ranked(documents).front(), 8);
  EXPECT_EQ(ranked({effect(3, 4, kNan, 1.0f)}), std::vector<int64_t>{3});
}

TEST(DocumentEffects, RanksAndShares) {
  std::vector<DocumentEffect> documents = {effect(0, 10, 1.0, 3.0f), effect(1, 30, 3.0, 1.0f),
                                           effect(2, 0, 0.0, 0.0f)};
  rank_documents(documents);
  double share = 0;
  for (const DocumentEffect& document : documents) {
    share += document.loss_share;
    if (document.place.document == 0) {
      EXPECT_EQ(document.loss_rank, 2);
      EXPECT_EQ(document.grad_rank, 1);
      EXPECT_DOUBLE_EQ(document.loss_share, 0.1);
    }
  }
  EXPECT_DOUBLE_EQ(share, 1);
  std::vector<DocumentEffect> none;
  rank_documents(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace skein
