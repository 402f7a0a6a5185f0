// Lanes that are read once, as a validation reads them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "skein/base/text/units.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/packer.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

// All tokens of a corpus, segment by segment, and how many segments there are.
std::pair<int64_t, int64_t> tokens_and_segments(const LaneContext& context) {
  int64_t num_tokens = 0, num_segments = 0;
  std::vector<int32_t> tokens;
  for (int64_t block = 0; block < context.blocks().num_blocks(); ++block) {
    const ByteRange range = context.blocks().block(block);
    for (int64_t position = range.begin; position < range.end; ++num_segments) {
      const Segment segment = context.blocks().segment(position, range.end);
      context.tokenize(segment, tokens);
      num_tokens += static_cast<int64_t>(tokens.size());
      position = segment.range.end;
    }
  }
  return {num_tokens, num_segments};
}

// Up to its end a lane that is read once has the rows of an endless one; behind it nothing counts.
void expect_read_once(const MemoryDocuments& documents, LaneOptions options) {
  options.may_be_small = true;
  const LaneContext endless(documents, kTokenizer, options);
  options.once = true;
  const LaneContext once(documents, kTokenizer, options);
  const int64_t lanes = options.global_sequences, length = options.sequence_length;
  std::vector<int64_t> ends;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    ends.push_back(Packer(once, lane, lane + 1).count_rows(0, 1).tokens);
  }
  Packer expected(endless, 0, lanes), found(once, 0, lanes);
  const Packer::Holding holding = found.count_rows(0, 3);
  found.restart();
  EXPECT_TRUE(holding.is_all);
  EXPECT_EQ(holding.most_rows, ceil_div(*std::max_element(ends.begin(), ends.end()), length));
  Batch a(0, lanes, length), b(0, lanes, length);
  int64_t labels = 0;
  for (int64_t row = 0; row <= holding.most_rows; ++row) {  // the last one is padding alone
    expected.fill(a);
    found.fill(b);
    labels += b.num_label_tokens;
    if (row == holding.most_rows) {
      EXPECT_EQ(b.num_label_tokens, 0);
    }
    for (int64_t i = 0; i < lanes * length; ++i) {
      const int64_t at = row * length + i % length, end = ends[static_cast<size_t>(i / length)];
      ASSERT_EQ(b.tokens[i], at < end ? a.tokens[i] : 0);
      ASSERT_EQ(b.labels[i], at + 1 < end ? a.labels[i] : kNoLabel);
      const int64_t begin = std::max<int64_t>(0, end - row * length);  // of the padding
      const int64_t start = options.document_mask ? begin : 0;
      ASSERT_EQ(b.attention_starts[i], at < end ? a.attention_starts[i] : start);
      ASSERT_EQ(b.positions[i], at < end ? a.positions[i] : i % length - start);
    }
  }
  const auto [num_tokens, num_segments] = tokens_and_segments(once);
  EXPECT_EQ(holding.tokens, num_tokens);
  EXPECT_EQ(labels, num_tokens - (options.document_mask ? num_segments : lanes));
}

TEST(Packer, EveryTokenOfACorpusThatIsReadOnceCountsOnce) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool mask : {true, false}) {
      for (const int64_t lanes : {1, 3, 8}) {
        SCOPED_TRACE(fmt::format("seed {}, mask {}, lanes {}", seed, mask, lanes));
        expect_read_once(random_documents(seed, 40, 60), {.seed = seed,
                                                          .global_sequences = lanes,
                                                          .sequence_length = 16,
                                                          .document_mask = mask,
                                                          .prepend_bos = mask});
      }
    }
  }
  // Of several blocks a lane, and smaller than a batch.
  expect_read_once(random_documents(1, 400, 2000),
                   {.seed = 3, .global_sequences = 2, .sequence_length = 64});
  expect_read_once(random_documents(2, 8, 20),
                   {.seed = 3, .global_sequences = 2, .sequence_length = 4096});
}

TEST(Packer, CountsNoMoreThanItIsAskedFor) {
  const MemoryDocuments documents = random_documents(7, 300, 80);
  const LaneContext once(documents, kTokenizer,
                         {.seed = 1, .global_sequences = 2, .sequence_length = 24, .once = true});
  Packer packer(once, 0, 2);
  const Packer::Holding all = packer.count_rows(0, 1);
  packer.restart();
  const Packer::Holding few = packer.count_rows(3, 1);  // plainly there
  EXPECT_EQ(few.most_rows, 3);
  EXPECT_EQ(few.tokens, 2 * 3 * 24);
  EXPECT_FALSE(few.is_all);
  packer.restart();
  const int64_t nearly = all.most_rows - 1;
  EXPECT_EQ(packer.count_rows(nearly, 2).most_rows, nearly);
  packer.restart();
  const Packer::Holding more = packer.count_rows(all.most_rows + 5, 2);
  EXPECT_EQ(more.most_rows, all.most_rows);
  EXPECT_EQ(more.tokens, all.tokens);
  EXPECT_TRUE(more.is_all);
}

}  // namespace
}  // namespace skein
