#include "skein/schedule/timeline_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

StepTimeline example(const PipelineShape& shape) {
  StepTimes times;
  times.chunks.assign(static_cast<size_t>(shape.num_chunks()), {0.001, 0.002});
  times.transfer_seconds = 0.0001;
  times.update_seconds = 0.004;
  return simulate(shape, times);
}

Json written(const StepTimeline& timeline) {
  const fs::path path = fs::path(testing::TempDir()) / "skein_timeline.json";
  write_timeline(timeline, path);
  Json json = read_json(path.string());
  fs::remove(path);
  return json;
}

TEST(WriteTimeline, EveryTaskReadsBackWithItsTimes) {
  const PipelineShape shape{4, 2, 10};
  const StepTimeline timeline = example(shape);
  const Json trace = written(timeline);
  std::vector<size_t> next(4, 0);
  int updates = 0, threads = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name") ++threads;
    if (event.at("ph") != "X") continue;
    const auto stage = event.at("tid").get<size_t>();
    if (event.at("name") == "update") {
      EXPECT_NEAR(event.at("ts").get<double>(), timeline.update_start * 1e6, 1e-3);
      EXPECT_NEAR(event.at("dur").get<double>(), 4000, 2e-3);
      ++updates;
      continue;
    }
    ASSERT_LT(next.at(stage), timeline.stages[stage].size());
    const TaskSpan& span = timeline.stages[stage][next[stage]++];
    const bool forward = span.task.kind == TaskKind::kForward;
    EXPECT_EQ(event.at("name"), (forward ? "F" : "B") + std::to_string(span.task.micro_batch));
    EXPECT_EQ(event.at("args").at("chunk"), span.task.chunk);
    EXPECT_EQ(event.at("args").at("micro_batch"), span.task.micro_batch);
    EXPECT_EQ(event.at("args").at("slot"), span.task.slot);
    EXPECT_NEAR(event.at("ts").get<double>(), span.start * 1e6, 1e-3);
    EXPECT_NEAR(event.at("dur").get<double>(), (span.end - span.start) * 1e6, 2e-3);
  }
  for (size_t stage = 0; stage < 4; ++stage) EXPECT_EQ(next[stage], timeline.stages[stage].size());
  EXPECT_EQ(updates, 4);
  EXPECT_EQ(threads, 4);
}

TEST(WriteTimeline, ArrowsLeadFromOneStageToAnotherAndForwardInTime) {
  const PipelineShape shape{3, 2, 6};
  const Json trace = written(example(shape));
  std::map<std::string, Json> from, to;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "s" && event.at("ph") != "f") continue;
    auto& side = event.at("ph") == "s" ? from : to;
    EXPECT_TRUE(side.emplace(event.at("id").get<std::string>(), event).second) << event;
  }
  EXPECT_EQ(from.size(), static_cast<size_t>(2 * (shape.num_chunks() - 1) * shape.micro_batches));
  ASSERT_EQ(from.size(), to.size());
  for (const auto& [id, start] : from) {
    ASSERT_TRUE(to.count(id)) << id;
    EXPECT_NE(start.at("tid"), to[id].at("tid"));
    EXPECT_LT(start.at("ts").get<double>(), to[id].at("ts").get<double>());
  }
}

TEST(WriteTimeline, CountersEndAtZeroAndPeakAtTheBound) {
  const Json trace = written(example({4, 1, 8}));
  std::map<std::string, std::pair<int64_t, int64_t>> last_and_most;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    auto& [last, most] = last_and_most[event.at("name")];
    last = event.at("args").at("micro_batches");
    most = std::max(most, last);
  }
  ASSERT_EQ(last_and_most.size(), 4U);
  EXPECT_EQ(last_and_most["in flight, stage 0"], (std::pair<int64_t, int64_t>(0, 4)));
  EXPECT_EQ(last_and_most["in flight, stage 3"], (std::pair<int64_t, int64_t>(0, 1)));
}

TEST(WriteTimeline, LargeTracesAndPathsThatDoNotExist) {
  const PipelineShape shape{8, 4, 128};
  int64_t tasks = 0;
  const Json trace = written(example(shape));
  for (const Json& event : trace.at("traceEvents"))
    tasks += event.contains("args") && event.at("args").contains("slot");
  EXPECT_EQ(tasks, 2 * shape.num_chunks() * shape.micro_batches);
  EXPECT_THROW(write_timeline(example(shape), "/nonexistent/folder/trace.json"), Error);
}

}  // namespace
}  // namespace skein
