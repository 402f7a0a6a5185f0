#include "skein/data/lanes/token_mask.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/packer.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

struct MaskedRow {
  std::vector<int32_t> before, tokens, labels;

  bool is_chosen(size_t i) const { return labels[i] != kNoLabel; }
};

MaskedRow masked(const std::string& text, const MaskOptions& options, int64_t row,
                 uint64_t seed = 1, int64_t padding = 0) {
  MaskedRow result;
  result.before.push_back(ByteTokenizer::kBos);
  kTokenizer.encode(text, result.before);
  result.before.push_back(ByteTokenizer::kEos);
  const std::vector<RowSegment> segments = {{.begin = 0, .end = std::ssize(result.before)}};
  result.before.resize(result.before.size() + static_cast<size_t>(padding));
  result.tokens = result.before;
  result.labels.assign(result.before.size(), 7);
  TokenMask(kTokenizer, options, kTokenizer.vocab_size(), seed)
      .apply(row, segments, result.tokens, result.labels);
  return result;
}

TEST(TokenMask, ChoosesItsShareAndHidesMostOfIt) {
  const std::string text(200, 'a');
  int64_t all = 0, chosen = 0, hidden = 0, replaced = 0;
  for (int64_t row = 0; row < 500; ++row) {
    const MaskedRow one = masked(text, {.probability = 0.15}, row, 1, 5);
    for (size_t i = 0; i < one.tokens.size(); ++i) {
      const bool is_text = one.before[i] == 'a';
      all += is_text ? 1 : 0;
      if (!one.is_chosen(i)) {
        EXPECT_EQ(one.tokens[i], one.before[i]);
        continue;
      }
      EXPECT_TRUE(is_text) << "special tokens and padding are spared";
      EXPECT_EQ(one.labels[i], one.before[i]);
      ++chosen;
      hidden += one.tokens[i] == ByteTokenizer::kMask ? 1 : 0;
      replaced += one.tokens[i] != ByteTokenizer::kMask && one.tokens[i] != 'a' ? 1 : 0;
    }
  }
  const auto share = [](int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  EXPECT_NEAR(share(chosen, all), 0.15, 0.005);
  EXPECT_NEAR(share(hidden, chosen), 0.80, 0.015);
  EXPECT_NEAR(share(replaced, chosen), 0.10, 0.01);
}

TEST(TokenMask, DependsOnSeedAndRowAlone) {
  const std::string text = "the quick brown fox jumps over the lazy dog, twice and once again";
  const MaskOptions options{.probability = 0.5};
  const MaskedRow one = masked(text, options, 12);
  EXPECT_EQ(one.labels, masked(text, options, 12).labels);
  EXPECT_EQ(one.tokens, masked(text, options, 12).tokens);
  EXPECT_NE(one.labels, masked(text, options, 13).labels);
  EXPECT_NE(one.labels, masked(text, options, 12, 2).labels);
  EXPECT_NE(one.labels, masked(text, options, 12 + (int64_t{1} << 32)).labels);
}

TEST(TokenMask, HidesWordsWhole) {
  const std::string text = "aaa bbbb cc ddddd eeee f gg hhhhhh iiiii jjj";
  int words = 0;
  for (int64_t row = 0; row < 100; ++row) {
    const MaskedRow one = masked(text, {.probability = 0.3, .whole_words = true}, row);
    for (size_t i = 2; i + 1 < one.before.size(); ++i) {
      if (one.before[i] != ' ') {
        EXPECT_EQ(one.is_chosen(i), one.is_chosen(i - 1)) << row;
      }
      words += one.before[i] == ' ' && one.is_chosen(i) ? 1 : 0;
    }
  }
  EXPECT_NEAR(words, 100 * 9 * 0.3, 60);
}

// Rows are masked by their number in the run, whoever packs them.
TEST(TokenMask, IsTheSameForEveryShareOfABatch) {
  const MemoryDocuments documents = random_documents(3, 200, 90);
  LaneOptions options;
  options.global_sequences = 4;
  options.sequence_length = 32;
  options.mask = {.probability = 0.2};
  const LaneContext context(documents, kTokenizer, options);
  Packer whole(context, 0, 4), first(context, 0, 2), second(context, 2, 4);
  for (int step = 0; step < 5; ++step) {
    Batch all(0, 4, 32), a(0, 2, 32), b(0, 2, 32);
    whole.fill(all);
    first.fill(a);
    second.fill(b);
    EXPECT_EQ(all.num_label_tokens, a.num_label_tokens + b.num_label_tokens);
    a.labels.insert(a.labels.end(), b.labels.begin(), b.labels.end());
    a.tokens.insert(a.tokens.end(), b.tokens.begin(), b.tokens.end());
    EXPECT_EQ(all.labels, a.labels);
    EXPECT_EQ(all.tokens, a.tokens);
  }
  Packer later(context, 0, 4);
  later.skip(2);
  Batch third(0, 4, 32), expected = batch_of_step(context, 3);
  later.fill(third);
  EXPECT_EQ(third.labels, expected.labels);
}

TEST(TokenMask, NeedsAMaskToken) {
  const auto refusal = [](const MaskOptions& options) -> std::string {
    try {
      TokenMask(kTokenizer, options, 258, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.probability = 0.1}), "");
  EXPECT_NE(refusal({.probability = 0.1, .token = "<mask>"}).find("data.mask_token is \"<mask>\""),
            std::string::npos);
}

}  // namespace
}  // namespace skein
