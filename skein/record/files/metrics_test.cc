#include "skein/record/files/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "skein/base/files/file.h"
#include "skein/record/files/events.h"

namespace skein {
namespace {

TEST(Metrics, WritesTheKeysOfTheFormat) {
  const StepMetrics metrics{.step = 7,
                            .loss = 10.5f,
                            .learning_rate = 1.5e-7f,
                            .grad_norm = 0.1f,
                            .param_norm = 1600,
                            .tokens = 4194304,
                            .epoch = 0.25f,
                            .tokens_per_s = 12345.678f,
                            .step_ms = 250,
                            .matmul_ceiling_share = 0.61f,
                            .time = 1763636883.25};
  EXPECT_EQ(
      metrics_line(metrics),
      R"({"step": 7, "loss": 10.5, "learning_rate": 1.5e-07, "grad_norm": 0.1, )"
      R"("param_norm": 1600, "tokens": 4194304, "epoch": 0.25, )"
      R"("tokens_per_s": 12345.678, "step_ms": 250, )"
      R"("data_wait_ms": 0, "checkpoint_stall_ms": 0, "replication_stall_ms": 0, "comm_exposed_ms": 0, )"
      R"("state_check_ms": 0, "model_flops_utilization": 0.61, "matmul_ceiling_share": 0.61, "time": 1763636883.25})");
}

TEST(Metrics, SaysWhichStartAndWhenOnItsMachine) {
  const StepMetrics metrics{.step = 7, .time = 100.5, .start = 3, .clock = 12.25};
  EXPECT_TRUE(metrics_line(metrics).ends_with(R"("time": 100.5, "start": 3, "clock": 12.25})"));
  EXPECT_EQ(parse_metrics(parse_json(metrics_line(metrics), "line")), metrics);
}

TEST(Metrics, FloatsReadBackToTheSameBits) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const StepMetrics metrics{.step = i, .loss = value, .param_norm = -value};
    const auto read = parse_metrics(parse_json(metrics_line(metrics), "line"));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(std::bit_cast<uint32_t>(read->loss), std::bit_cast<uint32_t>(value));
    EXPECT_EQ(*read, metrics);
  }
}

TEST(Metrics, WhatIsNotFiniteIsNull) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::string line = metrics_line({.step = 1, .loss = std::nanf(""), .grad_norm = inf});
  EXPECT_NE(line.find("\"loss\": null, "), std::string::npos);
  const auto read = parse_metrics(parse_json(line, "line"));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(std::isnan(read->loss));
  EXPECT_TRUE(std::isnan(read->grad_norm));
}

TEST(Metrics, RefusesOtherObjects) {
  for (const char* text :
       {"{}", "[]", R"({"step": 1})", R"({"step": 1.5, "loss": 1})", R"({"step": "1", "loss": 1})",
        R"({"step": 1, "loss": "1"})", R"({"step": 1, "loss": 1, "tokens": 1e300})"}) {
    EXPECT_FALSE(parse_metrics(parse_json(text, "line")).has_value()) << text;
  }
  EXPECT_TRUE(parse_metrics(parse_json(R"({"step": 1, "loss": 1})", "line")).has_value());
}

TEST(Metrics, AppendsToTheRunFolder) {
  const fs::path folder = fs::path(testing::TempDir()) / "metrics_run";
  fs::remove_all(folder);
  fs::create_directories(folder);
  MetricsLog(folder).append({.step = 1});
  MetricsLog(folder).append({.step = 2});
  int64_t num_steps = 0;
  for_each_json_line(folder / "metrics.jsonl",
                     [&](const Json& json) { EXPECT_EQ(json.at("step"), ++num_steps); });
  EXPECT_EQ(num_steps, 2);
}

TEST(Events, WritesTimeNameAndFieldsInOrder) {
  EXPECT_EQ(event_line(1.5, "checkpoint_commit", {{"step", 100}, {"path", "a\"b"}}),
            R"({"time": 1.5, "event": "checkpoint_commit", "step": 100, "path": "a\"b"})");
  EXPECT_EQ(event_line(2, "stop", OrderedJson::object()), R"({"time": 2, "event": "stop"})");
  EXPECT_NO_THROW(parse_json(event_line(2, "failure", {{"reason", "bad \xff byte"}}), "line"));
}

TEST(Events, AppendsToTheRunFolder) {
  const fs::path folder = fs::path(testing::TempDir()) / "events_run";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const double before = unix_time();
  EventLog(folder).append("start", {{"step", 0}});
  int num_events = 0;
  for_each_json_line(folder / "events.jsonl", [&](const Json& json) {
    ++num_events;
    EXPECT_EQ(json.at("event"), "start");
    EXPECT_GE(json.at("time").get<double>(), before);
    EXPECT_LE(json.at("time").get<double>(), unix_time());
  });
  EXPECT_EQ(num_events, 1);
}

}  // namespace
}  // namespace skein
