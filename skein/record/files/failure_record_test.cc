#include "skein/record/files/failure_record.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/text/json.h"

namespace skein {
namespace {

fs::path new_run(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / ("failure_record_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void append(const fs::path& path, const std::string& line) {
  std::ofstream(path, std::ios::app) << line << "\n";
}

Json last_event(const fs::path& run) {
  std::ifstream stream(run / "events.jsonl");
  std::string line, last;
  while (std::getline(stream, line)) last = line;
  return parse_json(last, "events");
}

TEST(FailureRecord, SaysWhoWhereAndWhy) {
  const fs::path run = new_run("says");
  append(run / "events.jsonl", R"({"time": 10, "event": "start", "step": 4})");
  EXPECT_EQ(last_known_step(run), 4);
  append(run / "metrics.jsonl", R"({"step": 5, "loss": 1, "time": 11})");
  append(run / "metrics.jsonl", R"({"step": 6, "loss": null, "time": 12})");
  append(run / "metrics.jsonl", R"({"step": 7, "lo)");
  EXPECT_EQ(last_known_step(run), 6);
  record_failure(run, 3, Error(ErrorCode::kPeerLost, "rank 3 was killed"));
  const Json event = last_event(run);
  EXPECT_EQ(event.at("event"), "failure");
  EXPECT_EQ(event.at("step"), 6);
  EXPECT_EQ(event.at("rank"), 3);
  EXPECT_EQ(event.at("reason"), "rank 3 was killed");
  EXPECT_EQ(event.at("fatal"), true);
  // A later start that went back to an earlier step and has completed none yet.
  append(run / "events.jsonl", R"({"time": 20, "event": "start", "step": 2})");
  EXPECT_EQ(last_known_step(run), 2);
}

TEST(FailureRecord, LooksAtTheEndOfLongFiles) {
  const fs::path run = new_run("long");
  for (int step = 1; step <= 20'000; ++step) {
    append(run / "metrics.jsonl",
           fmt::format(R"({{"step": {}, "loss": 1, "time": {}}})", step, step));
  }
  EXPECT_EQ(last_known_step(run), 20'000);
}

TEST(FailureRecord, WritesOnlyWhereARunHasBegunAndIsNotAnothers) {
  const fs::path run = new_run("nothing");
  record_failure(run, 0, Error(ErrorCode::kInvalid, "bad"));
  EXPECT_TRUE(fs::is_empty(run));
  EXPECT_EQ(last_known_step(run), std::nullopt);
  append(run / "events.jsonl", R"({"time": 10, "event": "start", "step": 0})");
  const auto size = fs::file_size(run / "events.jsonl");
  record_failure(run, 0, Error(ErrorCode::kBusy, "in use by process 1"));
  EXPECT_EQ(fs::file_size(run / "events.jsonl"), size);
  record_failure(run / "missing", 0, Error(ErrorCode::kInvalid, "bad"));
  EXPECT_FALSE(fs::exists(run / "missing"));
}

}  // namespace
}  // namespace skein
