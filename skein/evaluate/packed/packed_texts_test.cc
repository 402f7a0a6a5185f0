#include "skein/evaluate/packed/packed_texts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace skein {
namespace {

EncodedText text_of(int64_t num_tokens, int64_t score_from, int32_t first = 1) {
  EncodedText text;
  for (int64_t i = 0; i < num_tokens; ++i) text.tokens.push_back(first + static_cast<int32_t>(i));
  text.score_from = score_from;
  return text;
}

TEST(PackedTexts, ShareARowAndAttendToThemselves) {
  const PackedTexts packed({text_of(4, 2, 10), text_of(3, 1, 20)}, 8, true);
  ASSERT_EQ(packed.num_rows(), 1);
  Batch batch(0, 1, 8);
  packed.fill(0, batch);
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{10, 11, 12, 20, 21, 0, 0, 0}));
  EXPECT_EQ(batch.labels,
            (std::vector<int32_t>{kNoLabel, 12, 13, 21, 22, kNoLabel, kNoLabel, kNoLabel}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{0, 1, 2, 0, 1, 0, 1, 2}));
  EXPECT_EQ(batch.attention_starts, (std::vector<int32_t>{0, 0, 0, 3, 3, 5, 5, 5}));
  EXPECT_EQ(batch.num_label_tokens, 4);
  EXPECT_EQ(packed.text_at(0, 2), 0);
  EXPECT_EQ(packed.text_at(0, 3), 1);
}

TEST(PackedTexts, HaveRowsOfTheirOwnWithoutAMask) {
  const PackedTexts packed({text_of(3, 1), text_of(4, 1)}, 8, false);
  ASSERT_EQ(packed.num_rows(), 2);
  Batch batch(0, 4, 8);
  packed.fill(0, batch);
  EXPECT_EQ(batch.num_label_tokens, 5);
  for (const int32_t start : batch.attention_starts) EXPECT_EQ(start, 0);
  EXPECT_EQ(packed.text_at(0, 0), 1);  // the longer one
}

// Whatever the batch, each label is found once, under its own text.
TEST(PackedTexts, LoseNoLabel) {
  std::mt19937 random(7);
  std::vector<EncodedText> texts;
  for (int i = 0; i < 300; ++i) {
    const auto length = static_cast<int64_t>(2 + random() % 64);
    texts.push_back(text_of(length, 1 + static_cast<int64_t>(random() % (length - 1)), i * 1000));
  }
  const PackedTexts packed(texts, 64, true);
  EXPECT_LT(packed.num_rows() * 64, packed.num_tokens() * 11 / 10);
  for (const int64_t sequences : {1, 5, 32}) {
    std::map<int64_t, std::vector<int32_t>> found;
    int64_t num_labels = 0;
    for (int64_t row = 0; row < packed.num_rows(); row += sequences) {
      Batch batch(0, sequences, 64);
      packed.fill(row, batch);
      num_labels += batch.num_label_tokens;
      for (int64_t at = 0; at < sequences * 64; ++at) {
        if (batch.labels[at] == kNoLabel) continue;
        found[packed.text_at(row + at / 64, at % 64)].push_back(batch.labels[at]);
      }
    }
    EXPECT_EQ(num_labels, packed.num_labels());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto& tokens = texts[i].tokens;
      EXPECT_EQ(found[static_cast<int64_t>(i)],
                std::vector<int32_t>(tokens.begin() + texts[i].score_from, tokens.end()));
    }
  }
}

}  // namespace
}  // namespace skein
