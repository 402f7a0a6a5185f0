#include "skein/record/report/run_starts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "skein/base/files/file.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

std::string start(int64_t step, const std::string& from, const std::string& weight = "") {
  const std::string change =
      weight.empty()
          ? ""
          : fmt::format(R"({{"key": "data.source", "before": "", "after": "{}"}})", weight);
  return fmt::format(R"({{"event": "start", "step": {}, "from": "{}", "changed": [{}]}})"
                     "\n",
                     step, from, change);
}
std::string commit(int64_t step) {
  return fmt::format(
      R"({{"event": "checkpoint_commit", "step": {}, "path": "was/checkpoints/step-{:08}"}})"
      "\n",
      step, step);
}
std::string saved(int64_t step) { return fmt::format("is/checkpoints/step-{:08}", step); }

// The line of starts as "step after, step after, …".
std::string line_of(const std::string& events) {
  const test::TempFolder folder;
  write_file_atomic(folder / "events.jsonl", events);
  std::string text;
  for (const RecordedStart& start : recorded_starts(folder.path())) {
    text += fmt::format("{}{} ", start.step, start.changes.empty() ? "" : start.changes[0].after);
  }
  return text;
}

TEST(RunStarts, FollowFromEachOther) {
  EXPECT_EQ(line_of(""), "");
  const std::string two = start(0, "") + commit(50) + start(50, saved(50), "b") + commit(60);
  EXPECT_EQ(line_of(two), "0 50b ");
  EXPECT_EQ(line_of(two + start(60, saved(60))), "0 50b 60 ");
  // A start that saved nothing, and one that was killed before its first checkpoint.
  EXPECT_EQ(line_of(two + start(60, saved(60), "c") + start(60, saved(60))), "0 50b 60 ");
  EXPECT_EQ(line_of(start(0, "") + start(0, "")), "0 ");
  // From copies in memory, which no event tells of.
  EXPECT_EQ(line_of(two + start(63, "save 7 in memory", "c")), "0 50b 63c ");
  // Begun from another run.
  EXPECT_EQ(line_of(start(30, saved(30), "a") + commit(40) + start(40, saved(40))), "30a 40 ");
}

TEST(RunStarts, StartsThatAreGoneBackFromDoNotCount) {
  const std::string there = start(0, "") + commit(40) + commit(50) + start(50, saved(50), "b") +
                            commit(60) + start(40, saved(40), "c") + commit(60);
  EXPECT_EQ(line_of(there), "0 40c ");
  EXPECT_EQ(line_of(there + start(60, saved(60))), "0 40c 60 ");
  EXPECT_EQ(line_of(there + start(50, saved(50))), "0 50 ");
}

TEST(RunStarts, AStepIsOfTheLastStartBeforeIt) {
  const std::vector<RecordedStart> starts = {{0, {}, "", {}}, {50, {}, "", {}}, {60, {}, "", {}}};
  EXPECT_EQ(start_of_step(starts, 1), 0u);
  EXPECT_EQ(start_of_step(starts, 50), 0u);
  EXPECT_EQ(start_of_step(starts, 51), 1u);
  EXPECT_EQ(start_of_step(starts, 61), 2u);
}

}  // namespace
}  // namespace skein
