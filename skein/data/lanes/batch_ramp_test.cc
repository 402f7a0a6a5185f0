#include "skein/data/lanes/batch_ramp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "skein/base/error.h"
#include "skein/data/lanes/lane_testing.h"
#include "skein/data/lanes/loader.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

const ByteTokenizer kTokenizer;

TEST(BatchRamp, GivesTheSizeOfEachBatch) {
  const BatchRamp ramp = BatchRamp::parse(" 2 until 3,4  until 5 ", 8);
  std::vector<int64_t> sizes;
  int64_t rows = 0;
  for (int64_t batch = 1; batch <= 8; ++batch) {
    sizes.push_back(ramp.size(batch));
    EXPECT_EQ(ramp.rows(1, batch - 1), rows);
    rows += ramp.size(batch);
    for (int64_t first = 1; first <= batch; ++first) {
      EXPECT_EQ(ramp.rows(first, batch), rows - ramp.rows(1, first - 1));
    }
    // The fewest batches with so many tokens, and with one more.
    EXPECT_EQ(ramp.batches_of(static_cast<double>(rows * 10), 10), batch);
    EXPECT_EQ(ramp.batches_of(static_cast<double>(rows * 10 + 1), 10), batch + 1);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 2, 4, 4, 8, 8, 8}));
  EXPECT_EQ(ramp.rows(4, 3), 0);
  EXPECT_EQ(ramp.sizes(), (std::vector<int64_t>{2, 4, 8}));
  EXPECT_EQ(ramp.divisor(), 2);
  EXPECT_EQ(BatchRamp::parse("", 8), BatchRamp(8));
  EXPECT_EQ(BatchRamp(8).batches_of(81, 10), 2);
}

TEST(BatchRamp, RefusesWhatIsNoRamp) {
  for (const char* text : {"2", "2 until", "until 3", "2 until 3,", "2 until 3 until 4",
                           "0 until 3", "2 until 0", "-2 until 3", "x until 3"}) {
    EXPECT_THAT(error_of([&] { BatchRamp::parse(text, 8); }), HasSubstr("64 until 1000")) << text;
  }
  EXPECT_THAT(error_of([] { BatchRamp::parse("4 until 3, 2 until 5", 8); }),
              HasSubstr("2 rows until step 5 follow 4 until 3"));
  EXPECT_THAT(error_of([] { BatchRamp::parse("2 until 3, 4 until 3", 8); }),
              HasSubstr("expected more rows, and a later step"));
  EXPECT_THAT(error_of([] { BatchRamp::parse("8 until 3", 8); }),
              HasSubstr("ends with 8 rows, and global_sequences, which follows it, is 8"));
}

// Lanes, a ramp over them, and how many data ranks share its batches, for every seed.
struct Case {
  MemoryDocuments documents;
  LaneContext context;
  BatchRamp ramp;
  int64_t width;  // divides all sizes

  explicit Case(uint64_t seed)
      : documents(random_documents(seed, 40, 60)),
        context(documents, kTokenizer,
                {.seed = seed,
                 .global_sequences = static_cast<int64_t>(1 + seed % 9),
                 .sequence_length = static_cast<int64_t>(3 + seed % 11),
                 .document_mask = seed % 3 != 0}),
        width(static_cast<int64_t>(1 + seed % 3)) {
    std::mt19937_64 random(seed);
    const auto more = [&](int64_t than) { return than + 1 + static_cast<int64_t>(random() % 5); };
    const int64_t a = more(0), b = more(a), c = more(b), until = more(1);
    ramp = BatchRamp::parse(
        fmt::format("{} until {}, {} until {}", a * width, until, b * width, more(until)),
        c * width);
  }
  int64_t lanes() const { return context.options().global_sequences; }
  int64_t length() const { return context.options().sequence_length; }

  // Row `row` of the run, by its definition.
  Batch row(int64_t row) const {
    Packer packer(context, row % lanes(), row % lanes() + 1);
    packer.skip(row / lanes());
    Batch batch(0, 1, length());
    packer.fill(batch);
    return batch;
  }
};

TEST(BatchRamp, BatchesTakeTheRowsOfTheRunOneAfterTheOther) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case test(seed);
    Loader loader(test.context, {.ramp = test.ramp});
    int64_t row = 0;
    for (int64_t step = 1; step <= 14; ++step) {
      const Batch& batch = loader.next();
      ASSERT_EQ(batch.sequences, test.ramp.size(step));
      for (int64_t i = 0; i < batch.sequences; ++i, ++row) {
        const Batch expected = test.row(row);
        ASSERT_EQ(batch.lane(i), row % test.lanes());
        const auto same = [&](auto member) {
          return std::ranges::equal(batch.row(batch.*member, i), expected.*member);
        };
        ASSERT_TRUE(same(&Batch::tokens)) << "seed " << seed << ", row " << row;
        ASSERT_TRUE(same(&Batch::labels));
        ASSERT_TRUE(same(&Batch::positions));
        ASSERT_TRUE(same(&Batch::attention_starts));
      }
      ASSERT_EQ(loader.position().rows_taken, row);
    }
  }
}

// What each step reads, over all ranks, and where it leaves the lanes.
struct Told {
  std::vector<int32_t> tokens;
  int64_t num_label_tokens = 0;
  std::vector<int64_t> progress;
  std::vector<MixtureState> states;
  int64_t rows_taken = 0;
  bool operator==(const Told&) const = default;
};

// Steps `first` to `last` by ranks that exchange lanes, as those of a run do.
std::vector<Told> run_ranks(const Case& test, int64_t ranks, int64_t first, int64_t last,
                            const SkippedBatches& skipped, std::vector<MixtureState> states,
                            int64_t rows_taken) {
  const auto count = static_cast<size_t>(last - first + 1);
  std::vector<Told> told(count);
  std::vector<std::vector<MixtureState>> exchanged(2);
  std::mutex mutex;
  std::barrier together(ranks);
  const auto gather = [&](std::span<const MixtureState> own, std::span<const int64_t> lanes,
                          std::vector<MixtureState>& all) {
    {
      const std::lock_guard lock(mutex);
      all.resize(static_cast<size_t>(test.lanes()));
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_TRUE(all[static_cast<size_t>(lanes[i])].lanes.empty()) << "two ranks answer";
        all[static_cast<size_t>(lanes[i])] = own[i];
      }
    }
    together.arrive_and_wait();
    std::vector<MixtureState> result = all;
    for (const MixtureState& state : result) EXPECT_FALSE(state.lanes.empty()) << "nobody answers";
    together.arrive_and_wait();
    {
      const std::lock_guard lock(mutex);
      all.clear();
    }
    together.arrive_and_wait();
    return result;
  };
  const auto work = [&](int64_t rank) {
    Loader loader(
        test.context,
        {.share = {rank * test.width / ranks, (rank + 1) * test.width / ranks, test.width},
         .ramp = test.ramp,
         .first_step = first,
         .rows_taken = rows_taken,
         .exchange = [&](auto own, auto lanes) { return gather(own, lanes, exchanged[0]); },
         .skipped = skipped},
        states);
    for (Told& of_step : told) {
      const Batch& batch = loader.next();
      const auto all = gather(loader.position().states, loader.position().lanes, exchanged[1]);
      for (int64_t turn = 0; turn < ranks; ++turn) {
        if (turn == rank) {
          of_step.tokens.insert(of_step.tokens.end(), batch.tokens.begin(), batch.tokens.end());
          of_step.num_label_tokens += batch.num_label_tokens;
          of_step.progress.resize(batch.progress.size());
          for (size_t i = 0; i < batch.progress.size(); ++i) {
            of_step.progress[i] += batch.progress[i];
          }
          of_step.states = all;
          of_step.rows_taken = loader.position().rows_taken;
        }
        together.arrive_and_wait();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank) threads.emplace_back(work, rank);
  }
  return told;
}

TEST(BatchRamp, RanksReadWhatOneReadsHoweverOftenTheyBeginAgain) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Case test(seed);
    SkippedBatches skipped;
    if (seed % 2 == 1) skipped = SkippedBatches::parse("2, 4-5, 8");
    constexpr int64_t kSteps = 12;
    const std::vector<Told> expected = run_ranks(test, 1, 1, kSteps, skipped, {}, 0);
    std::mt19937_64 random(seed);
    for (int64_t ranks = 1; ranks <= test.width; ++ranks) {
      if (test.width % ranks != 0) continue;
      std::vector<MixtureState> states;
      int64_t rows_taken = 0;
      for (int64_t first = 1; first <= kSteps;) {
        const int64_t last = std::min(kSteps, first + static_cast<int64_t>(random() % 5));
        const auto found = run_ranks(test, ranks, first, last, skipped, states, rows_taken);
        for (int64_t step = first; step <= last; ++step) {
          ASSERT_EQ(found[static_cast<size_t>(step - first)],
                    expected[static_cast<size_t>(step - 1)])
              << "seed " << seed << ", step " << step << ", " << ranks << " ranks";
        }
        // As a checkpoint holds them.
        const Json saved = parse_json(
            lanes_to_json(test.context, found.back().states, found.back().rows_taken).dump(),
            "test");
        states = lanes_from_json(saved, test.context, "test");
        rows_taken = rows_taken_in(saved, 0, "test");
        EXPECT_EQ(num_lanes_in(saved), test.lanes());
        first = last + 1;
      }
    }
  }
}

TEST(BatchRamp, CountsTheLanesOfARank) {
  for (int64_t lanes = 1; lanes <= 12; ++lanes) {
    for (int64_t sequences = 1; sequences <= 24; ++sequences) {
      for (int64_t rows = 1; rows <= sequences; ++rows) {
        std::set<int64_t> read;
        for (int64_t batch = 0; batch < lanes; ++batch) {
          for (int64_t row = 0; row < rows; ++row) read.insert((batch * sequences + row) % lanes);
        }
        EXPECT_EQ(lanes_of_rows(lanes, sequences, rows), std::ssize(read));
      }
    }
  }
}

}  // namespace
}  // namespace skein
