#include "skein/data/lanes/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

bool splits_character(const std::string& line, int64_t position) {
  return position < static_cast<int64_t>(line.size()) &&
         (static_cast<unsigned char>(line[position]) & 0xC0) == 0x80;
}

TEST(CorpusBlocks, PartitionTheCorpusAndCutOnlyDocumentsLongerThanAWindow) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto documents = random_documents(seed, 1 + seed % 40, 1 + seed % 97);
    std::string line;
    std::set<int64_t> starts;
    for (const auto& text : documents.texts()) {
      starts.insert(static_cast<int64_t>(line.size()));
      line += text;
    }
    const auto num_bytes = static_cast<int64_t>(line.size());
    const int64_t num_lanes = std::max<int64_t>(1, num_bytes / 8 / (1 + seed % 5));
    if (num_bytes < 8 * num_lanes) continue;
    const CorpusBlocks blocks(documents, num_lanes, 16);
    ASSERT_EQ(blocks.num_bytes(), num_bytes);
    ASSERT_GE(blocks.num_blocks(), num_lanes);
    const int64_t window = num_bytes / blocks.num_blocks() + 1;
    int64_t position = 0;
    for (int64_t k = 0; k < blocks.num_blocks(); ++k) {
      const ByteRange block = blocks.block(k);
      ASSERT_EQ(block.begin, position);
      ASSERT_GT(block.size(), 0) << "block " << k << " seed " << seed;
      ASSERT_LT(block.size(), 2 * window + 4);
      ASSERT_FALSE(splits_character(line, block.begin));
      if (!starts.contains(block.begin)) {  // cut because the document covers a whole window
        const int64_t next = starts.upper_bound(block.begin) == starts.end()
                                 ? num_bytes
                                 : *starts.upper_bound(block.begin);
        ASSERT_GE(next - *(--starts.upper_bound(block.begin)), window - 1);
      }
      Segment next;
      while (position < block.end) {
        const Segment segment = blocks.segment(position, block.end);
        if (position > block.begin) {
          ASSERT_EQ(next.document, segment.document);
          ASSERT_EQ(next.document_begin, segment.document_begin);
          ASSERT_EQ(next.range.end, segment.range.end);
          ASSERT_TRUE(blocks.text(next) == blocks.text(segment).str());
          ASSERT_EQ(next.ends_document, segment.ends_document);
        }
        if (segment.range.end < block.end) next = blocks.next_segment(segment, block.end);
        ASSERT_EQ(segment.range.begin, position);
        ASSERT_GT(segment.range.size(), 0);
        ASSERT_LE(segment.range.end, block.end);
        ASSERT_EQ(blocks.text(segment).str(), line.substr(position, segment.range.size()));
        ASSERT_EQ(segment.ends_document,
                  starts.contains(segment.range.end) || segment.range.end == num_bytes);
        position = segment.range.end;
      }
    }
    ASSERT_EQ(position, num_bytes);
  }
}

// A corpus of any size in the memory of one document.
class SameDocument final : public DocumentSource {
 public:
  SameDocument(int64_t num_documents, std::string text)
      : num_documents_(num_documents), text_(std::move(text)) {}
  int64_t num_documents() const override { return num_documents_; }
  int64_t num_bytes() const override { return num_documents_ * size(); }
  int64_t document_bytes(int64_t) const override { return size(); }
  HeldText part(int64_t, int64_t begin, int64_t num_bytes) const override {
    return HeldText(
        std::string_view(text_).substr(static_cast<size_t>(begin), static_cast<size_t>(num_bytes)));
  }
  DocumentPlace find(int64_t position) const override {
    return {position / size(), position / size() * size()};
  }
  std::string name() const override { return "same"; }

 private:
  int64_t size() const { return static_cast<int64_t>(text_.size()); }

  int64_t num_documents_;
  std::string text_;
};

TEST(CorpusBlocks, AreAboutAMebibyteOfWholeDocumentsInALargeCorpus) {
  const SameDocument documents(400'000, std::string(3000, 'a'));
  const CorpusBlocks blocks(documents, 1, 4096);
  EXPECT_EQ(blocks.num_blocks(), 1145);  // 1.2 GB in windows of 1 MiB
  for (int64_t k = 0; k < blocks.num_blocks(); ++k) {
    EXPECT_EQ(blocks.block(k).begin % 3000, 0);
    EXPECT_NEAR(blocks.block(k).size(), 1 << 20, 20000);
  }
}

TEST(CorpusBlocks, ShrinkForASmallCorpusButKeepDocumentsWholeWhereTheyCan) {
  const SameDocument large(40'000, std::string(3000, 'a'));
  EXPECT_EQ(CorpusBlocks(large, 2, 1024).num_blocks(), 2048);  // 1024 per lane
  const SameDocument documents(1000, std::string(3000, 'a'));
  EXPECT_EQ(CorpusBlocks(documents, 4, 1024).num_blocks(), 91);  // 32 KiB each
  const CorpusBlocks many(documents, 500, 1024);                 // 1 per lane
  EXPECT_EQ(many.num_blocks(), 500);
  for (int64_t k = 0; k < 500; ++k) EXPECT_EQ(many.block(k).begin % 3000, 0);
}

TEST(CorpusBlocks, CutALongDocumentForTokenizingIntoEvenSegments) {
  const MemoryDocuments documents({std::string((1 << 20) + 5, 'a')});
  const CorpusBlocks blocks(documents, 1, 1024);
  EXPECT_EQ(blocks.segment_bytes(), 256 << 10);
  int64_t num_segments = 0;
  for (int64_t position = 0; position < blocks.num_bytes(); ++num_segments) {
    const Segment segment = blocks.segment(position, blocks.num_bytes());
    EXPECT_NEAR(segment.range.size(), (1 << 20) / 5, 5);
    position = segment.range.end;
    EXPECT_EQ(segment.ends_document, position == blocks.num_bytes());
  }
  EXPECT_EQ(num_segments, 5);
  EXPECT_EQ(CorpusBlocks(documents, 1, 1 << 17).segment_bytes(), 2 << 20);  // fits a long row
}

TEST(CorpusBlocks, BytesThatAreNotUtf8AreCutAllTheSame) {
  const MemoryDocuments documents({std::string(1000, '\x80')});
  const CorpusBlocks blocks(documents, 100, 16);
  for (int64_t k = 0; k < 100; ++k) EXPECT_GT(blocks.block(k).size(), 0);
}

TEST(CorpusBlocks, RefuseACorpusTooSmallToDivide) {
  for (const auto& texts : {std::vector<std::string>{}, {"", ""}, {"hello", "world"}}) {
    const MemoryDocuments documents(texts);
    try {
      const CorpusBlocks blocks(documents, 2, 16);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      const std::string message = error.what();
      EXPECT_NE(message.find("memory.arrow"), std::string::npos);
      EXPECT_NE(message.find("16 in all"), std::string::npos) << message;
      EXPECT_NE(message.find("global_sequences"), std::string::npos);
    }
  }
}

TEST(BlockOrder, EveryEpochIsAPermutation) {
  for (int64_t n = 1; n < 200; ++n) {
    const BlockOrder order(7, n);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> seen;
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(order.epoch(epoch * n + i), epoch);
        seen.push_back(order.block(epoch * n + i));
      }
      std::sort(seen.begin(), seen.end());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], i) << "n " << n;
    }
  }
}

TEST(BlockOrder, IsUniformAndDependsOnSeedAndEpoch) {
  constexpr int64_t kBlocks = 6, kEpochs = 30000;
  const BlockOrder order(1, kBlocks);
  std::vector<int> pairs(kBlocks * kBlocks);  // (first, second) of each epoch
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    ++pairs[order.block(epoch * kBlocks) * kBlocks + order.block(epoch * kBlocks + 1)];
  }
  for (int64_t i = 0; i < kBlocks * kBlocks; ++i) {
    const bool possible = i / kBlocks != i % kBlocks;
    EXPECT_NEAR(pairs[i], possible ? 1000 : 0, possible ? 160 : 0) << i;  // 5 standard deviations
  }
  const BlockOrder other(2, 1000), same(2, 1000), first(1, 1000);
  int differs_by_seed = 0, differs_by_epoch = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(other.block(i), same.block(i));
    differs_by_seed += first.block(i) != other.block(i);
    differs_by_epoch += first.block(i) != first.block(i + 1000);
  }
  EXPECT_GT(differs_by_seed, 980);
  EXPECT_GT(differs_by_epoch, 980);
}

// The order must not change: a run continued by a later version must see the same rows.
TEST(BlockOrder, Pinned) {
  std::vector<int64_t> found;
  const BlockOrder order(1, 10);
  for (int64_t i = 0; i < 20; ++i) found.push_back(order.block(i));
  EXPECT_EQ(found, (std::vector<int64_t>{4, 0, 8, 6, 3, 1, 7, 2, 9, 5,  //
                                         2, 6, 4, 3, 1, 7, 0, 5, 9, 8}));
}

}  // namespace
}  // namespace skein
