#include "skein/data/lanes/token_count.h"

#include <gtest/gtest.h>

#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

TEST(TokenCount, CountsASmallCorpusExactly) {
  const MemoryDocuments documents(std::vector<std::string>(100, "abcdefgh"));
  const LaneContext context(documents, kTokenizer,
                            {.global_sequences = 2, .sequence_length = 16, .vocab_size = 258});
  const TokenCount count = count_tokens(context);
  EXPECT_TRUE(count.is_exact);
  EXPECT_EQ(count.counted_bytes, 800);
  EXPECT_EQ(count.tokens, 100 * (8 + 2));  // BOS, EOS
}

TEST(TokenCount, EstimatesALargeOneFromBlocksOfAllOfIt) {
  std::vector<std::string> texts;  // longer documents at the end: fewer BOS and EOS
  for (int i = 0; i < 20'000; ++i) texts.emplace_back(20, 'a');
  for (int i = 0; i < 400; ++i) texts.emplace_back(1000, 'b');
  const MemoryDocuments documents(texts);
  const LaneContext context(documents, kTokenizer,
                            {.global_sequences = 2, .sequence_length = 16, .vocab_size = 258});
  const TokenCount whole = count_tokens(context);
  ASSERT_TRUE(whole.is_exact);
  const TokenCount part = count_tokens(context, 200'000);
  EXPECT_FALSE(part.is_exact);
  EXPECT_LT(part.counted_bytes, 300'000);
  EXPECT_NEAR(part.tokens / whole.tokens, 1.0, 0.03);
  EXPECT_EQ(part.tokens, count_tokens(context, 200'000).tokens);
}

}  // namespace
}  // namespace skein
