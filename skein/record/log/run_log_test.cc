// A run's numbers of starts, on what a power cut may leave of its files; the ceiling of its steps.
#include "skein/record/log/run_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/record/files/jsonl.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

// Else its steps could not be told from those of the start before.
TEST(RunLog, AStartHasANumberOfItsOwnWhereTheLineOfTheOneBeforeIsLost) {
  const test::TempFolder folder;
  for (const char* end : {"\n", ""}) {  // of the last line of metrics, which is whole
    const fs::path dir = folder / (std::string("run") + (*end == '\n' ? "-whole" : "-torn"));
    fs::create_directories(dir);
    std::ofstream(dir / "events.jsonl") << "{\"event\": \"start\", \"number\": 1}\n";
    std::ofstream(dir / "metrics.jsonl") << "{\"step\": 3, \"loss\": 1, \"start\": 2}" << end;
    Config config;
    config.run.dir = dir.string();
    RunLog(config, {}).start(3, "checkpoints/step-00000003", {});
    int64_t number = 0;
    for_each_json_line(dir / "events.jsonl", [&](const Json& json) { number = json.at("number"); });
    EXPECT_EQ(number, 3);
  }
}

// What was measured was too low: the machine was busy, or is faster than a large product.
TEST(RunLog, NoShareIsAboveOne) {
  const test::TempFolder folder;
  for (const bool measures : {false, true}) {
    Config config;
    config.run.dir = (folder / (measures ? "measures" : "does-not")).string();
    config.run.steps = 3;
    RunLog log(config, {});
    RunLog::Scale scale{.flops_per_token = 1e6, .ceiling_flops = 1e8, .num_ranks = 2};
    if (measures) scale.measure_ceiling = [] { return 2e8; };
    log.set_scale(scale);
    log.start(0, "", {});
    const double seconds[] = {1, 0.5, 1};  // 1e9, 2e9, 1e9 FLOP/s
    for (int64_t step = 1; step <= 3; ++step) {
      log.step({.step = step, .loss = 1}, {}, seconds[step - 1], Clock::now(), 1000);
    }
    std::vector<StepMetrics> steps;
    for_each_json_line(folder / config.run.dir / "metrics.jsonl",
                       [&](const Json& json) { steps.push_back(*parse_metrics(json)); });
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].matmul_ceiling_share, 1.0f);
    EXPECT_EQ(steps[1].matmul_ceiling_share, 1.0f);
    EXPECT_EQ(steps[2].matmul_ceiling_share, 0.5f);
    EXPECT_EQ(steps[2].ceiling_flops, 2e9f);
    // The next generation begins with what the steps reached, not with what was measured.
    EXPECT_NEAR(RunLog(config, {.generation = 2}).ceiling_before(4), 4e9, 1e3);
    EXPECT_EQ(RunLog(config, {.generation = 1}).ceiling_before(4), 0);
  }
}

}  // namespace
}  // namespace skein
