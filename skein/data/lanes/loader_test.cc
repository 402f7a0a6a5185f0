#include "skein/data/lanes/loader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <utility>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

const ByteTokenizer kTokenizer;

class LoaderTest : public testing::Test {
 protected:
  const MemoryDocuments documents_ = random_documents(4, 60, 80);
  const LaneContext context_{
      documents_, kTokenizer, {.seed = 2, .global_sequences = 4, .sequence_length = 24}};
};

TEST_F(LoaderTest, GivesWhatThePackerPacks) {
  Packer packer(context_, 1, 3);
  Batch expected(1, 2, 24);
  Loader loader(context_, {.share = {1, 3, 4}, .ramp = BatchRamp(4)});
  for (int64_t step = 1; step <= 200; ++step) {
    packer.fill(expected);
    const Batch& batch = loader.next();
    ASSERT_EQ(batch.step, step);
    ASSERT_EQ(batch.first_lane, 1);
    ASSERT_EQ(batch.tokens, expected.tokens);
    ASSERT_EQ(batch.labels, expected.labels);
    ASSERT_EQ(batch.positions, expected.positions);
    ASSERT_EQ(batch.attention_starts, expected.attention_starts);
    ASSERT_EQ(batch.num_label_tokens, expected.num_label_tokens);
  }
}

TEST_F(LoaderTest, PassesOverWhatIsSkipped) {
  const SkippedBatches skipped = SkippedBatches::parse("1-2, 5, 9-11");
  const auto run = [&](int64_t from, int64_t to, std::vector<MixtureState> states) {
    Loader loader(context_,
                  {.ramp = BatchRamp(4),
                   .first_step = from,
                   .rows_taken = 4 * skipped.batch_of(from - 1),
                   .skipped = skipped},
                  states);
    for (int64_t step = from; step < to; ++step) {
      const Batch& batch = loader.next();
      EXPECT_EQ(batch.step, step);
      EXPECT_EQ(batch.tokens, batch_of_step(context_, skipped.batch_of(step)).tokens) << step;
      EXPECT_EQ(batch.progress, batch_of_step(context_, skipped.batch_of(step)).progress) << step;
    }
    const auto after = loader.states();
    return std::vector<MixtureState>(after.begin(), after.end());
  };
  std::vector<MixtureState> states;
  for (const auto& [from, to] : {std::pair{1, 3}, {3, 4}, {4, 6}, {6, 12}}) {
    states = run(from, to, states);
  }
}

TEST_F(LoaderTest, StatesAreThoseOfTheBatchGivenNotOfWhatWasMadeAhead) {
  const auto run = [&](int64_t from, int64_t to, std::vector<MixtureState> states) {
    Loader loader(
        context_,
        {.ramp = BatchRamp(4), .first_step = from, .rows_taken = 4 * (from - 1), .num_batches = 6},
        states);
    std::vector<int32_t> tokens;
    for (int64_t step = from; step < to; ++step) tokens = loader.next().tokens;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // lets it run ahead
    const auto after = loader.states();
    return std::pair(tokens, std::vector<MixtureState>(after.begin(), after.end()));
  };
  const auto whole = run(1, 41, {});
  auto [tokens, states] = run(1, 1, {});
  EXPECT_EQ(states, std::vector<MixtureState>(4, {{LaneState{}}, {}}));
  for (const auto& [from, to] : {std::pair{1, 3}, {3, 4}, {4, 24}, {24, 41}}) {
    std::tie(tokens, states) = run(from, to, states);
  }
  EXPECT_EQ(tokens, whole.first);
  EXPECT_EQ(states, whole.second);
}

TEST_F(LoaderTest, ABatchStaysAsItIsUntilTheNextIsAskedFor) {
  Loader loader(context_, {.ramp = BatchRamp(4), .num_batches = 2});
  for (int i = 0; i < 20; ++i) {
    const Batch& batch = loader.next();
    const auto tokens = batch.tokens;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(batch.tokens, tokens);
    ASSERT_EQ(batch.step, i + 1);
  }
}

TEST_F(LoaderTest, NothingIsWaitedForInSteadyState) {
  Loader loader(context_, {.ramp = BatchRamp(4)});
  double wait_seconds = -1;
  loader.next(&wait_seconds);
  EXPECT_GE(wait_seconds, 0);
  int num_without_wait = 0;
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a training step
    loader.next(&wait_seconds);
    num_without_wait += wait_seconds == 0;
  }
  EXPECT_GE(num_without_wait, 8);  // a busy machine may delay the thread
}

// Encodes slowly, or fails after a number of calls; remembers the priority of its thread.
class StrangeTokenizer final : public Tokenizer {
 public:
  explicit StrangeTokenizer(int fail_after, int delay_ms = 0)
      : fail_after_(fail_after), delay_ms_(delay_ms) {}
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (calls_++ == fail_after_) fail(ErrorCode::kInvalid, "the tokenizer broke");
    if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
    niceness_ = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    kTokenizer.encode(text, out);
  }
  std::string decode(std::span<const int32_t> ids) const override { return kTokenizer.decode(ids); }
  int vocab_size() const override { return 258; }
  int bos_id() const override { return 256; }
  int eos_id() const override { return 257; }
  std::string content_hash() const override { return "strange"; }
  std::vector<fs::path> files() const override { return {}; }
  int niceness() const { return niceness_; }

 private:
  int fail_after_, delay_ms_;
  mutable std::atomic<int> calls_ = 0, niceness_ = 0;
};

TEST(Loader, AnErrorArrivesAfterTheBatchesMadeBeforeIt) {
  const MemoryDocuments documents(std::vector<std::string>(1000, std::string(30, 'a')));
  const StrangeTokenizer tokenizer(10);  // ten documents are 320 tokens: ten whole rows of 31
  const LaneContext context(documents, tokenizer, {.sequence_length = 31});
  Loader loader(context, LoaderOptions());
  for (int64_t step = 1; step <= 10; ++step) EXPECT_EQ(loader.next().step, step);
  for (int i = 0; i < 2; ++i) {
    try {
      loader.next();
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "the tokenizer broke");
    }
  }
}

TEST(Loader, WaitsForASlowTokenizerAndSaysHowLong) {
  const MemoryDocuments documents(std::vector<std::string>(1000, std::string(30, 'a')));
  const StrangeTokenizer tokenizer(-1, 10);
  const LaneContext context(documents, tokenizer, {.sequence_length = 32});
  Loader loader(context, LoaderOptions());
  double wait_seconds = 0, total = 0;
  for (int i = 0; i < 30; ++i) {
    loader.next(&wait_seconds);
    total += wait_seconds;
  }
  EXPECT_GT(total, 0.1);
  EXPECT_GE(tokenizer.niceness(), 10);
}

TEST(Loader, StopsWhileABatchIsBeingMade) {
  const MemoryDocuments documents(std::vector<std::string>(1000, std::string(30, 'a')));
  const StrangeTokenizer tokenizer(-1, 5);
  const LaneContext context(documents, tokenizer, {.sequence_length = 32});
  for (int i = 0; i < 20; ++i) {
    Loader loader(context, LoaderOptions());
    if (i % 2 == 0) loader.next();
    if (i % 4 == 0) loader.stop();
    if (i == 0) {
      EXPECT_THROW(while (true) loader.next(), Error);
    }
  }
}

TEST_F(LoaderTest, ValidationBatchesAreTheSameEveryTime) {
  LaneOptions options = context_.options();
  options.once = true;
  const LaneContext once(documents_, kTokenizer, options);
  ValidationBatches validation(once, {}, 4, 7);
  EXPECT_EQ(validation.count().most_rows, 7);
  validation.set_rows_of_lane(7);
  std::vector<std::vector<int32_t>> first, second;
  while (const Batch* batch = validation.next()) {
    first.push_back(batch->tokens);
    EXPECT_EQ(batch->step, static_cast<int64_t>(first.size()));
  }
  EXPECT_EQ(validation.next(), nullptr);
  validation.rewind();
  while (const Batch* batch = validation.next()) second.push_back(batch->tokens);
  EXPECT_EQ(first.size(), 7u);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, second);
}

using LabelsOfRows = std::map<std::pair<int64_t, int64_t>, std::vector<int32_t>>;  // lane, row

// The rows with labels that `num_ranks` ranks read together.
LabelsOfRows validated_rows(const LaneContext& context, int64_t sequences, int64_t num_ranks,
                            int64_t most_rows) {
  LabelsOfRows found;
  int64_t rows_of_lane = 0, tokens = 0;
  std::vector<ValidationBatches> ranks;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    ranks.emplace_back(context, RowShare{rank, rank + 1, num_ranks}, sequences, most_rows);
    const Packer::Holding holding = ranks.back().count();
    rows_of_lane = std::max(rows_of_lane, holding.most_rows);
    tokens += holding.tokens;
  }
  int64_t labels = 0;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    ranks[rank].set_rows_of_lane(rows_of_lane);
    while (const Batch* batch = ranks[rank].next()) {
      labels += batch->num_label_tokens;
      for (int64_t i = 0; i < batch->sequences; ++i) {
        const auto row = batch->row(batch->labels, i);
        if (std::all_of(row.begin(), row.end(), [](int32_t l) { return l < 0; })) continue;
        const int64_t of_run = (batch->step - 1) * sequences + rank * batch->sequences + i;
        const int64_t lanes = context.options().global_sequences;
        EXPECT_EQ(batch->lane(i), of_run % lanes);
        found[{of_run % lanes, of_run / lanes}] = {row.begin(), row.end()};
      }
    }
  }
  EXPECT_LT(labels, tokens);
  EXPECT_GT(labels, tokens / 2);
  return found;
}

TEST_F(LoaderTest, ValidationCountsTheSameRowsInBatchesOfAnySize) {
  LaneOptions options = context_.options();
  options.once = true;
  const LaneContext once(documents_, kTokenizer, options);
  for (const int64_t most_rows : {3, 0}) {
    const LabelsOfRows expected = validated_rows(once, 4, 1, most_rows);
    for (const auto& [lane_and_row, labels] : expected) {
      EXPECT_TRUE(most_rows == 0 || lane_and_row.second < most_rows);
    }
    for (const int64_t sequences : {1, 2, 3, 6, 8, 24}) {
      EXPECT_EQ(validated_rows(once, sequences, 1, most_rows), expected) << sequences;
    }
    for (const int64_t num_ranks : {2, 3, 6}) {
      EXPECT_EQ(validated_rows(once, 6, num_ranks, most_rows), expected) << num_ranks;
    }
  }
}

}  // namespace
}  // namespace skein
