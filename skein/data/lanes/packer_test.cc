#include "skein/data/lanes/packer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

// A row of a lane, made the slow way: all its text is written out as one list of tokens that know
// their segment, and the row is cut out of it.
Batch reference_row(const LaneContext& context, int64_t lane, int64_t row) {
  struct Token {
    int32_t id;
    int64_t segment, index;  // which segment of the lane; index of its first token
  };
  const LaneOptions& options = context.options();
  const int64_t length = options.sequence_length;
  std::vector<Token> tokens;
  int64_t num_segments = 0;
  for (int64_t k = 0; static_cast<int64_t>(tokens.size()) <= (row + 1) * length; ++k) {
    const ByteRange block =
        context.blocks().block(context.order().block(lane + k * options.global_sequences));
    for (int64_t position = block.begin; position < block.end; ++num_segments) {
      const Segment segment = context.blocks().segment(position, block.end);
      const auto begin = static_cast<int64_t>(tokens.size());
      if (options.prepend_bos) tokens.push_back({ByteTokenizer::kBos, num_segments, begin});
      for (const char c : context.blocks().text(segment).str()) {
        tokens.push_back({static_cast<unsigned char>(c), num_segments, begin});
      }
      if (segment.ends_document) tokens.push_back({ByteTokenizer::kEos, num_segments, begin});
      position = segment.range.end;
    }
  }
  Batch expected(lane, 1, length);
  for (int64_t t = 0; t < length; ++t) {
    const int64_t i = row * length + t;
    const bool masked = options.document_mask;
    const int64_t start = masked ? std::max(tokens[i].index - row * length, int64_t{0}) : 0;
    const bool last = masked && tokens[i + 1].segment != tokens[i].segment;
    expected.tokens[t] = tokens[i].id;
    expected.labels[t] = last ? -100 : tokens[i + 1].id;
    expected.positions[t] = static_cast<int32_t>(t - start);
    expected.attention_starts[t] = static_cast<int32_t>(start);
    expected.num_label_tokens += !last;
  }
  return expected;
}

void expect_row(const Batch& batch, int64_t index, const Batch& expected, int64_t r = 0) {
  const auto same = [&](std::vector<int32_t> Batch::*values) {
    const auto a = batch.row(batch.*values, index);
    const auto b = expected.row(expected.*values, r);
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  ASSERT_TRUE(same(&Batch::tokens));
  ASSERT_TRUE(same(&Batch::labels));
  ASSERT_TRUE(same(&Batch::positions));
  ASSERT_TRUE(same(&Batch::attention_starts));
}

// A corpus, and options that fit it, for every seed.
struct Case {
  MemoryDocuments documents;
  LaneContext context;

  explicit Case(uint64_t seed)
      : documents(random_documents(seed, 20 + seed % 30, 20 + 7 * (seed % 11))),
        context(documents, kTokenizer,
                {.seed = seed,
                 .global_sequences = static_cast<int64_t>(1 + seed % 6),
                 .sequence_length = static_cast<int64_t>(2 + seed % 37),
                 .document_mask = seed % 3 != 0,
                 .prepend_bos = seed % 2 != 0}) {}

  int64_t num_lanes() const { return context.options().global_sequences; }
  Batch batch(int64_t first_lane, int64_t end_lane) const {
    return Batch(first_lane, end_lane - first_lane, context.options().sequence_length);
  }
};

TEST(Packer, RowsAreThoseOfTheReference) {
  bool wrapped = false;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Case test(seed);
    Packer packer(test.context, 0, test.num_lanes());
    Batch batch = test.batch(0, test.num_lanes());
    for (int64_t row = 0; row < 40; ++row) {
      packer.fill(batch);
      int64_t num_label_tokens = 0;
      for (int64_t lane = 0; lane < test.num_lanes(); ++lane) {
        const Batch expected = reference_row(test.context, lane, row);
        expect_row(batch, lane, expected);
        num_label_tokens += expected.num_label_tokens;
      }
      ASSERT_EQ(batch.num_label_tokens, num_label_tokens);
    }
    std::vector<MixtureState> states;
    packer.states(states);
    wrapped |= test.context.epoch(0, states[0].lanes[0]) > 1;
  }
  EXPECT_TRUE(wrapped);  // the test covered several epochs
}

TEST(Packer, RowsDependNeitherOnTheSplitOfLanesNorOnWhereItStopped) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Case test(seed);
    const int64_t lanes = test.num_lanes();
    std::mt19937_64 random(seed);
    Packer whole(test.context, 0, lanes, {}, 2);
    Batch expected = test.batch(0, lanes);
    std::vector<MixtureState> states;
    whole.states(states);
    for (int generation = 0; generation < 6; ++generation) {
      // Every generation divides the lanes anew and continues from what the previous one saved.
      std::vector<Packer> ranks;
      std::vector<Batch> batches;
      for (int64_t lane = 0; lane < lanes;) {
        const int64_t end = lane + 1 + static_cast<int64_t>(random() % (lanes - lane));
        ranks.emplace_back(test.context, lane, end, states);
        batches.push_back(test.batch(lane, end));
        lane = end;
      }
      for (int64_t steps = static_cast<int64_t>(random() % 9); steps > 0; --steps) {
        whole.fill(expected);
        for (size_t r = 0; r < ranks.size(); ++r) {
          ranks[r].fill(batches[r]);
          for (int64_t i = 0; i < batches[r].sequences; ++i) {
            expect_row(batches[r], i, expected, batches[r].first_lane + i);
          }
        }
      }
      states.clear();
      for (const Packer& rank : ranks) {
        std::vector<MixtureState> part;
        rank.states(part);
        states.insert(states.end(), part.begin(), part.end());
      }
      states = lanes_from_json(parse_json(lanes_to_json(test.context, states).dump(), "test"),
                               test.context, "test");
      std::vector<MixtureState> whole_states;
      whole.states(whole_states);
      ASSERT_EQ(states, whole_states);
    }
  }
}

TEST(Packer, ADocumentLongerThanABlockIsReadWholeInSegments) {
  constexpr int64_t kLength = 10007;
  std::string text;
  for (int i = 0; text.size() < 9'000'000; ++i) text += std::to_string(i);
  const MemoryDocuments documents({text});
  const LaneContext context(documents, kTokenizer,
                            {.sequence_length = kLength, .prepend_bos = false});
  int64_t num_segments = 0;
  for (int64_t k = 0; k < context.blocks().num_blocks(); ++k) {
    const ByteRange block = context.blocks().block(k);
    for (int64_t position = block.begin; position < block.end; ++num_segments) {
      position = context.blocks().segment(position, block.end).range.end;
    }
  }
  EXPECT_GE(num_segments, 4 * 9);

  Packer packer(context, 0, 1);
  Batch batch(0, 1, kLength);
  std::string found;
  int64_t num_without_label = 0;
  while (found.size() < text.size()) {
    packer.fill(batch);
    num_without_label += std::count(batch.labels.begin(), batch.labels.end(), kNoLabel);
    found += kTokenizer.decode(batch.tokens);
  }
  EXPECT_EQ(num_without_label, num_segments);
  // Blocks come in another order, so compare what does not depend on it.
  found.resize(text.size());
  std::sort(found.begin(), found.end());
  std::sort(text.begin(), text.end());
  EXPECT_EQ(found, text);
}

TEST(BatchOfStep, IsTheBatchThatTrainingSees) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case test(seed);
    Packer packer(test.context, 0, test.num_lanes());
    Batch expected = test.batch(0, test.num_lanes());
    std::vector<MixtureState> states;
    for (int64_t step = 1; step <= 20; ++step) {
      if (step == 11) packer.states(states);  // the state after step 10
      packer.fill(expected);
    }
    const Batch replayed = batch_of_step(test.context, 20, 0, {}, 2);
    const Batch continued = batch_of_step(test.context, 20, 10, states);
    EXPECT_EQ(replayed.step, 20);
    for (int64_t lane = 0; lane < test.num_lanes(); ++lane) {
      expect_row(replayed, lane, expected, lane);
      expect_row(continued, lane, expected, lane);
    }
    EXPECT_THROW(batch_of_step(test.context, 0), Error);
    EXPECT_THROW(batch_of_step(test.context, 10, 10, states), Error);
  }
}

// With one token per byte, and BOS and EOS around documents, tokens and progress are proportional.
TEST(Packer, ProgressIsTheShareOfTheCorpusThatWasRead) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case test(seed);
    const int64_t lanes = test.num_lanes();
    Packer whole(test.context, 0, lanes);
    Batch batch = test.batch(0, lanes);
    double last = 0;
    std::vector<MixtureState> states;
    for (int64_t step = 1; step <= 40; ++step) {
      whole.fill(batch);
      const double epochs = test.context.epochs(static_cast<double>(batch.progress.at(0)));
      EXPECT_GE(epochs, last) << step;
      last = epochs;
      double least = 1e9, most = 0;  // lanes get different amounts of text
      whole.states(states);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const double blocks = static_cast<double>(states[lane].lanes[0].block * lanes);
        const auto num_blocks = static_cast<double>(test.context.blocks().num_blocks());
        least = std::min(least, blocks / num_blocks);
        most = std::max(most, (blocks + static_cast<double>(lanes)) / num_blocks);
      }
      EXPECT_GE(epochs, least);
      EXPECT_LE(epochs, most);
    }
  }
}

TEST(Packer, ProgressDependsNeitherOnTheSplitOfLanesNorOnWhereItStopped) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case test(seed);
    const int64_t lanes = test.num_lanes();
    Packer whole(test.context, 0, lanes);
    Batch batch = test.batch(0, lanes);
    for (int64_t step = 1; step <= 9; ++step) whole.fill(batch);
    std::vector<MixtureState> states;
    whole.states(states);
    for (int64_t step = 10; step <= 13; ++step) whole.fill(batch);
    int64_t sum = 0;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Packer one(test.context, lane, lane + 1, states);
      Batch part = test.batch(lane, lane + 1);
      for (int64_t step = 10; step <= 13; ++step) one.fill(part);
      sum += part.progress.at(0);
    }
    EXPECT_EQ(sum, batch.progress.at(0));
  }
}

TEST(Packer, ProgressIsOneWhenTheCorpusHasBeenReadOnce) {
  const MemoryDocuments documents(std::vector<std::string>(1024, "abcdefghijklmn"));  // 16 tokens
  const LaneContext context(documents, kTokenizer,
                            {.global_sequences = 4, .sequence_length = 64, .vocab_size = 258});
  Packer packer(context, 0, 4);
  Batch batch(0, 4, 64);
  for (int step = 0; step < 64; ++step) packer.fill(batch);
  EXPECT_EQ(context.epochs(static_cast<double>(batch.progress.at(0))), 1.0);
  for (int step = 0; step < 32; ++step) packer.fill(batch);
  EXPECT_EQ(context.epochs(static_cast<double>(batch.progress.at(0))), 1.5);
}

TEST(Packer, AnErrorInOneOfItsThreadsIsThrown) {
  const MemoryDocuments documents(std::vector<std::string>(5000, "abcdefghij"));
  const LaneContext context(documents, kTokenizer,
                            {.global_sequences = 8, .sequence_length = 64, .vocab_size = 257});
  Packer packer(context, 0, 8, {}, 3);
  Batch batch(0, 8, 64);
  EXPECT_THROW(packer.fill(batch), Error);
}

// What a row is made of, in order and without a gap, and each part is of its document.
TEST(Packer, TellsWhatRowsAreMadeOf) {
  const MemoryDocuments documents = random_documents(4, 60, 80);
  const ByteTokenizer tokenizer;
  const LaneContext context(documents, tokenizer,
                            {.seed = 2, .global_sequences = 4, .sequence_length = 24});
  Packer packer(context, 1, 4);
  Batch batch(1, 3, 24);
  std::vector<RowSegment> segments;
  for (int step = 1; step <= 100; ++step) {
    packer.fill(batch, &segments);
    std::vector<int64_t> ends(3, 0);
    for (const RowSegment& segment : segments) {
      ASSERT_EQ(segment.begin, ends.at(segment.row));
      ASSERT_GT(segment.end, segment.begin);
      ends[segment.row] = segment.end;
      const auto row = batch.row(batch.tokens, segment.row);
      ASSERT_EQ(row[segment.begin] == ByteTokenizer::kBos, segment.first_token == 0);
      const std::string text =
          tokenizer.decode(row.subspan(segment.begin, segment.end - segment.begin));
      ASSERT_NE(documents.document(segment.document).find(text), std::string_view::npos);
    }
    EXPECT_EQ(ends, std::vector<int64_t>(3, 24));
  }
}

TEST(Batch, JsonHasTheRowsAndWhereDocumentsStart) {
  Batch batch(6, 2, 4);
  batch.step = 9;
  batch.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  batch.labels = {2, kNoLabel, 4, 5, 6, 7, 8, kNoLabel};
  batch.positions = {0, 1, 0, 1, 0, 1, 2, 3};
  batch.attention_starts = {0, 0, 2, 2, 0, 0, 0, 0};
  const std::vector<RowSegment> segments = {{0, 0, 2, 30}, {0, 2, 4, 31}, {1, 0, 4, 8, 5}};
  EXPECT_EQ(batch_to_json(batch, segments), parse_json(R"({"step": 9, "rows": [
      {"lane": 6, "tokens": [1, 2, 3, 4], "labels": [2, -100, 4, 5], "positions": [0, 1, 0, 1],
       "document_starts": [0, 2], "documents": [{"document": 30, "begin": 0, "end": 2},
                                                {"document": 31, "begin": 2, "end": 4}]},
      {"lane": 7, "tokens": [5, 6, 7, 8], "labels": [6, 7, 8, -100], "positions": [0, 1, 2, 3],
       "document_starts": [0], "documents": [{"document": 8, "begin": 0, "end": 4}]}]})",
                                                       "test"));
  EXPECT_EQ(Batch::bytes(2, 4), 4 * 2 * 4 * 4);
}

}  // namespace
}  // namespace skein
