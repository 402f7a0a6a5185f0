#include "skein/record/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "skein/base/error.h"
#include "skein/checkpoint/find/run_lock.h"
#include "skein/config/config.h"
#include "skein/record/files/events.h"
#include "skein/record/report/text_plot.h"

namespace skein {
namespace {

fs::path fresh_run(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

StepMetrics step_at(int64_t step, double time) {
  return {.step = step,
          .loss = 10.0f / static_cast<float>(step),
          .grad_norm = 1,
          .tokens = step * 1000,
          .tokens_per_s = static_cast<float>(100 * step),
          .step_ms = 1000,
          .data_wait_ms = 100,
          .checkpoint_stall_ms = 50,
          .matmul_ceiling_share = 0.5f,
          .time = time};
}

// Steps 1 to 6 take a second each. The run is killed after 6, when the newest checkpoint is of step
// 4; it restarts at second 20, runs steps 5 to 10, and stops at second 27.
fs::path write_run(const std::string& name) {
  const fs::path folder = fresh_run(name);
  Config config;
  config.run.steps = 12;
  std::ofstream(folder / "config.toml") << config_text(config);
  std::ofstream events(folder / "events.jsonl");
  std::ofstream metrics(folder / "metrics.jsonl");
  events << event_line(100, "start", {{"step", 0}}) << "\n";
  for (int step = 1; step <= 6; ++step) {
    metrics << metrics_line(step_at(step, 100 + step)) << "\n";
  }
  events << event_line(104, "checkpoint_commit", {{"step", 4}}) << "\n";
  events << event_line(
                106.5, "failure",
                {{"step", 6}, {"rank", 0}, {"reason", "worker 0 was killed"}, {"fatal", true}})
         << "\n";
  metrics << "{\"step\": 7, \"loss\": 1.\n\n7\n{\"step\": 7}\n";
  events << event_line(120, "start", {{"step", 4}}) << "\n";
  for (int step = 5; step <= 10; ++step) {
    StepMetrics again = step_at(step, 116 + step);
    if (step == 9) again.loss = 0.5f;
    metrics << metrics_line(again) << "\n";
  }
  events << event_line(126.2, "validation", {{"step", 10}, {"loss", 1.25}}) << "\n";
  events << event_line(126.5, "checkpoint_commit", {{"step", 10}}) << "\n";
  events << event_line(127, "stop", {{"reason", "SIGTERM"}}) << "\n";
  return folder;
}

TEST(Report, AccountsForEverySecond) {
  const RunReport report = read_report(write_run("report_seconds"));
  EXPECT_EQ(report.steps.size(), 10u);
  EXPECT_NEAR(report.wall_seconds(), 27, 1e-9);
  EXPECT_NEAR(report.time.seconds(TimePart::kProductive), 10 * 0.85, 1e-5);
  EXPECT_NEAR(report.time.seconds(TimePart::kDataWait), 1.0, 1e-5);
  EXPECT_NEAR(report.checkpoint_stall_seconds, 0.5, 1e-5);
  EXPECT_NEAR(report.time.seconds(TimePart::kRedone), 2.0, 1e-9);
  EXPECT_NEAR(report.other_seconds(), 27 - 8.5 - 1 - 0.5 - 2, 1e-4);
  EXPECT_NEAR(report.goodput(), 8.5 / 27, 1e-6);
}

// Steps 1 to 20, then a restart from the checkpoint of step 10 up to step 15: steps 16 to 20 no
// longer belong to the run.
TEST(Report, StepsThatWereAbandonedAreNotUseful) {
  const fs::path folder = fresh_run("report_abandoned");
  std::ofstream lines(folder / "events.jsonl"), metrics(folder / "metrics.jsonl");
  lines << event_line(100, "start", {{"step", 0}}) << "\n"
        << event_line(120.1, "validation", {{"step", 20}, {"loss", 9}}) << "\n"
        << event_line(121, "stop", {{"step", 20}, {"reason", "done"}}) << "\n"
        << event_line(200, "start", {{"step", 10}}) << "\n"
        << event_line(206, "stop", {{"step", 15}, {"reason", "SIGTERM"}}) << "\n";
  for (int step = 1; step <= 20; ++step) {
    metrics << metrics_line(step_at(step, 100 + step)) << "\n";
  }
  for (int step = 11; step <= 15; ++step) {
    metrics << metrics_line(step_at(step, 190 + step)) << "\n";
  }
  metrics.close();
  lines.close();
  const RunReport report = read_report(folder);
  ASSERT_EQ(report.steps.size(), 15u);
  EXPECT_EQ(report.steps.back().step, 15);
  EXPECT_NEAR(report.time.seconds(TimePart::kProductive), 15 * 0.85, 1e-5);
  EXPECT_NEAR(report.time.seconds(TimePart::kRedone), 10, 1e-5);
  EXPECT_TRUE(report.validations.empty());
  EXPECT_EQ(report.failures.size(), 0u);
  // The same before the first step of the new start.
  std::ofstream(folder / "events.jsonl", std::ios::app)
      << event_line(300, "start", {{"step", 5}}) << "\n";
  const RunReport back = read_report(folder);
  EXPECT_EQ(back.steps.size(), 5u);
  EXPECT_NEAR(back.time.seconds(TimePart::kRedone), 20, 1e-5);
}

TEST(Report, AStartWithoutAnEndIsAFailure) {
  const fs::path folder = fresh_run("report_vanished");
  std::ofstream(folder / "events.jsonl") << event_line(100, "start", {{"step", 0}}) << "\n"
                                         << event_line(150, "start", {{"step", 0}}) << "\n";
  std::ofstream(folder / "metrics.jsonl") << metrics_line(step_at(1, 151)) << "\n";
  {
    const RunReport report = read_report(folder);
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures.back().step, 1);
    EXPECT_EQ(report.end, RunReport::End::kVanished);
    EXPECT_NE(report_text(report).find("failures      2, the last after step 1"),
              std::string::npos);
    EXPECT_NE(report_text(report).find("stopped       ended without a word: killed"),
              std::string::npos);
  }
  {
    const RunLock lock(folder);
    const RunReport report = read_report(folder);
    EXPECT_EQ(report.failures.size(), 1u);  // only the earlier one
    EXPECT_EQ(report_json(report).at("end"), "running");
  }
  EXPECT_EQ(read_report(folder).end, RunReport::End::kVanished);
  std::ofstream(folder / ".lock") << "process 1 on another.example";
  const RunReport elsewhere = read_report(folder);
  EXPECT_EQ(elsewhere.end, RunReport::End::kUnknown);
  EXPECT_EQ(elsewhere.failures.size(), 1u);
}

// Running a finished run again does nothing, a day later or twice.
TEST(Report, AStartThatDidNothingIsLeftOut) {
  const fs::path folder = fresh_run("report_idle");
  {
    std::ofstream events(folder / "events.jsonl"), metrics(folder / "metrics.jsonl");
    events << event_line(100, "start", {{"step", 0}, {"number", 1}}) << "\n"
           << event_line(106.5, "stop", {{"step", 6}, {"reason", "done"}}) << "\n";
    for (int step = 1; step <= 6; ++step) {
      metrics << metrics_line(step_at(step, 100 + step)) << "\n";
    }
  }
  const OrderedJson before = report_json(read_report(folder));
  for (int number = 2; number <= 3; ++number) {
    std::ofstream(folder / "events.jsonl", std::ios::app)
        << event_line(90'000 * number, "start", {{"step", 6}, {"number", number}}) << "\n"
        << event_line(90'000 * number + 1, "stop", {{"step", 6}, {"reason", "done"}}) << "\n";
  }
  EXPECT_EQ(report_json(read_report(folder)).dump(), before.dump());
  // One that trains on, since run.steps is higher by now, counts.
  std::ofstream(folder / "events.jsonl", std::ios::app)
      << event_line(400'000, "start", {{"step", 6}, {"number", 4}}) << "\n";
  const RunReport report = read_report(folder);
  EXPECT_EQ(report.num_restarts, 1);
  EXPECT_GT(report.wall_seconds(), 300'000);
}

// A worker was killed: its supervisor wrote that down and began a generation.
TEST(Report, AWorkerThatWasKilledIsOneFailure) {
  const fs::path folder = fresh_run("report_one_failure");
  const std::string killed = "rank 1 was killed by signal 9 (SIGKILL)";
  const std::string start = event_line(100, "start", {{"step", 0}}) + "\n";
  const std::string failure =
      event_line(110, "failure", {{"rank", 1}, {"reason", killed}, {"fatal", false}}) + "\n";
  const std::string generation =
      event_line(110.1, "generation",
                 {{"generation", 2}, {"reason", "killed at step 7: " + killed}}) +
      "\n";
  const std::string again = event_line(111, "start", {{"step", 6}, {"generation", 2}}) + "\n" +
                            event_line(120, "stop", {{"step", 9}, {"reason", "done"}}) + "\n";
  for (const std::string& told : {failure + generation, generation + failure, generation}) {
    std::ofstream(folder / "events.jsonl") << start + told + again;
    const RunReport report = read_report(folder);
    ASSERT_EQ(report.failures.size(), 1u) << told;
    EXPECT_NE(report.failures[0].reason.find(killed), std::string::npos);
    EXPECT_FALSE(report.failures[0].fatal);
    EXPECT_EQ(report.num_restarts, 1);
  }
}

TEST(Report, TheLastFailureIsShownWithItsText) {
  const fs::path folder = fresh_run("report_failed");
  std::ofstream(folder / "events.jsonl")
      << event_line(100, "start", {{"step", 0}}) << "\n"
      << event_line(101, "failure", {{"step", 2}, {"reason", "disk full"}, {"fatal", false}})
      << "\n"
      << event_line(
             102, "failure",
             {{"step", 7}, {"rank", 0}, {"reason", "step 8: the loss is nan"}, {"fatal", true}})
      << "\n";
  const std::string text = report_text(read_report(folder));
  EXPECT_NE(text.find("failures      2, the last after step 7"), std::string::npos) << text;
  EXPECT_NE(text.find("disk full (training continued)"), std::string::npos) << text;
  EXPECT_NE(text.find("stopped       failed: step 8: the loss is nan"), std::string::npos) << text;
}

TEST(Report, ALastSaveThatFailedIsOneFailure) {
  const fs::path folder = fresh_run("report_last_save");
  std::ofstream(folder / "events.jsonl")
      << event_line(100, "start", {{"step", 0}}) << "\n"
      << event_line(101, "failure", {{"step", 4}, {"reason", "disk full"}, {"fatal", false}})
      << "\n"
      << event_line(102, "failure", {{"step", 8}, {"reason", "disk full"}, {"fatal", false}})
      << "\n"
      << event_line(103, "failure",
                    {{"step", 8},
                     {"rank", 0},
                     {"reason", "disk full; the same command then begins again"},
                     {"fatal", true}})
      << "\n";
  const RunReport report = read_report(folder);
  ASSERT_EQ(report.failures.size(), 2U) << report_text(report);
  EXPECT_FALSE(report.failures[0].fatal);
  EXPECT_TRUE(report.failures[1].fatal);
}

TEST(Report, JsonTellsWhatHappened) {
  const OrderedJson json = report_json(read_report(write_run("report_json")));
  EXPECT_EQ(json.at("steps"), 10);
  EXPECT_EQ(json.at("planned_steps"), 12);
  EXPECT_EQ(json.at("final_loss"), 1.0);
  EXPECT_EQ(json.at("best_loss"), 0.5);
  EXPECT_EQ(json.at("best_loss_step"), 9);
  EXPECT_EQ(json.at("tokens"), 10000);
  EXPECT_EQ(json.at("median_tokens_per_s"), 600.0);
  EXPECT_EQ(json.at("validation").dump(), R"([{"step":10,"loss":1.25}])");
  EXPECT_EQ(json.at("restarts"), 1);
  EXPECT_EQ(json.at("failures").dump(),
            R"([{"time":106.5,"reason":"worker 0 was killed","step":6,"rank":0,"fatal":true}])");
  EXPECT_EQ(json.at("end"), "stopped");
  EXPECT_EQ(json.at("checkpoints"), 2);
  EXPECT_EQ(json.at("last_checkpoint_step"), 10);
  EXPECT_EQ(json.at("last_stop_reason"), "SIGTERM");
  EXPECT_EQ(json.at("bad_lines"), 3);
}

TEST(Report, TextNamesTheSameThings) {
  const std::string text = report_text(read_report(write_run("report_text")));
  for (const char* part : {"steps         10 of 12", "loss          1.0000 at step 10",
                           "best loss     0.5000 at step 9", "validation    1.2500 at step 10",
                           "goodput       31.48%; 62.96% without the 13.5 s", "restarts      1",
                           "worker 0 was killed", "checkpoints   2, the last at step 10",
                           "stopped       SIGTERM", "bad lines     3 skipped", "loss over steps"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Report, CountsSpikesOfTheCurve) {
  const fs::path folder = fresh_run("report_spikes");
  MetricsLog log(folder);
  for (int step = 1; step <= 160; ++step) {
    StepMetrics metrics = step_at(step, 100 + step);
    metrics.grad_norm = step == 30 || step == 40 || step == 41 ? 1.5f : step == 160 ? 9.0f : 1.0f;
    log.append(metrics);
  }
  const OrderedJson json = report_json(read_report(folder));
  EXPECT_EQ(json.at("grad_spikes").dump(), R"([{"length":1,"count":2},{"length":2,"count":1}])");
  EXPECT_NEAR(json.at("grad_spikes_of_one_step"), 2.0 / 3, 1e-9);
  EXPECT_EQ(json.at("grad_alarms"), 1);
  EXPECT_NE(report_text(read_report(folder)).find("; 1 alarm\n"), std::string::npos);
  EXPECT_EQ(json.at("planned_steps"), nullptr);
}

TEST(Report, ReadsARunThatHasHardlyBegun) {
  const fs::path folder = fresh_run("report_begun");
  EventLog(folder).append("start");
  const RunReport report = read_report(folder);
  EXPECT_EQ(report_json(report).at("final_loss"), nullptr);
  EXPECT_EQ(report.goodput(), 0);
  EXPECT_NE(report_text(report).find("steps         0"), std::string::npos);
}

TEST(Report, SurvivesLossesThatAreNotFinite) {
  const fs::path folder = fresh_run("report_nan");
  MetricsLog log(folder);
  for (int step = 1; step <= 3; ++step) {
    StepMetrics metrics = step_at(step, 100 + step);
    metrics.loss = std::nanf("");
    metrics.tokens_per_s = std::nanf("");
    log.append(metrics);
  }
  const RunReport report = read_report(folder);
  EXPECT_EQ(report.best(), nullptr);
  EXPECT_EQ(report_json(report).at("final_loss"), nullptr);
  EXPECT_EQ(report_text(report).find("loss over steps"), std::string::npos);
}

TEST(Report, RefusesAFolderThatIsNoRun) {
  try {
    read_report(fresh_run("report_empty"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("expected a run folder"), std::string::npos);
  }
}

TEST(TextPlot, DrawsAFallingLine) {
  const PlotPoint points[] = {{1, 4}, {2, 3}, {3, 2}, {4, 1}};
  EXPECT_EQ(text_plot(points, 4, 2),
            "         4 │█▃  \n"
            "         1 │██▆▁\n"
            "            1  4\n");
}

TEST(TextPlot, LeavesGapsAndIgnoresWhatIsNotFinite) {
  const PlotPoint points[] = {{0, 1}, {1, std::nan("")}, {2, 1}};
  EXPECT_EQ(text_plot(points, 3, 1), "         1 │▁ ▁\n            0 2\n");
  EXPECT_EQ(text_plot(std::span(points, 1), 3, 1), "");
}

}  // namespace
}  // namespace skein
