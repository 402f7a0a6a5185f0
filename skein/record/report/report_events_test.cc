// What the report tells of events: machines that came and went, what was changed, how it went. The
// files are written by those who write them in a run.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "skein/record/files/events.h"
#include "skein/record/log/run_log.h"
#include "skein/record/report/report.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

class ReportEvents : public testing::Test {
 protected:
  ReportEvents() { config_.run.dir = (folder_ / "run").string(), config_.run.steps = 100; }

  // A start of two ranks, and steps of a second each with that learning rate.
  void train(int64_t after, int64_t until, float learning_rate, int64_t generation = 1,
             std::span<const Change> changes = {}) {
    log_.emplace(config_, Launched{.generation = generation});
    log_->set_scale({.num_parameters = 1000,
                     .flops_per_token = 1e6,
                     .ceiling_flops = 4e9,
                     .num_ranks = 2,
                     .arithmetic = "avx2"});
    log_->start(after, after == 0 ? "" : "checkpoints/step", {.changes = changes});
    for (int64_t step = after + 1; step <= until; ++step) {
      log_->step({.step = step, .loss = 2, .learning_rate = learning_rate, .grad_norm = 1}, {}, 1,
                 Clock::now(), 1000);
    }
  }
  OrderedJson json() const { return report_json(read_report(config_.run.dir)); }
  std::string text() const { return report_text(read_report(config_.run.dir)); }
  bool says(const std::string& words) const { return text().find(words) != std::string::npos; }

  test::TempFolder folder_;
  Config config_;
  std::optional<RunLog> log_;
};

// Rank 0 of the machine that stays says first that it lost its peer.
TEST_F(ReportEvents, AMachineThatIsLostIsNamedAndNotTheRankThatStayed) {
  train(0, 7, 1e-3f);
  EventLog events(config_.run.dir);
  const std::string lost_peer = "rank 0: rank 1 does not answer for 5 s";
  events.append("failure", {{"step", 7}, {"rank", 0}, {"reason", lost_peer}, {"fatal", false}});
  events.append("host_lost", {{"machine", "node-b"}, {"generation", 2}, {"reason", ""}});
  events.append("generation", {{"generation", 2}, {"reason", ""}, {"cause", "machine"}});
  train(6, 9, 1e-3f, 2);
  events.append("host_joined", {{"machine", "node-c"}, {"generation", 3}});
  log_->stop(9, "SIGTERM");
  const OrderedJson report = json();
  ASSERT_EQ(report.at("failures").size(), 1u) << report.dump(1);
  const OrderedJson& failure = report.at("failures")[0];
  EXPECT_EQ(failure.at("machine"), "node-b");
  EXPECT_EQ(failure.at("rank"), nullptr);
  EXPECT_EQ(failure.at("step"), 7);
  EXPECT_EQ(report.at("hosts_lost")[0].at("machine"), "node-b");
  EXPECT_EQ(report.at("hosts_lost")[0].at("generation"), 2);
  EXPECT_EQ(report.at("hosts_joined")[0].at("machine"), "node-c");
  EXPECT_TRUE(says("machines      generation 2 began without node-b\n")) << text();
  EXPECT_TRUE(says("              generation 3 took in node-c\n")) << text();
  EXPECT_TRUE(says("failures      1, the last after step 7\n")) << text();
  EXPECT_TRUE(says("lost the machine node-b (training continued)")) << text();
  EXPECT_FALSE(says("does not answer")) << text();
}

// A worker of it was killed first: that is the failure, and the machine that left says no more.
TEST_F(ReportEvents, AWorkersOwnFailureIsKeptWhereItsMachineLeaves) {
  train(0, 7, 1e-3f);
  EventLog events(config_.run.dir);
  const std::string killed = "rank 1 was killed by signal 9 (SIGKILL)";
  events.append("failure", {{"step", 7}, {"rank", 1}, {"reason", killed}, {"fatal", false}});
  events.append("host_lost", {{"machine", "node-b"}, {"generation", 2}, {"reason", killed}});
  events.append("generation", {{"generation", 2}, {"reason", killed}, {"cause", "killed"}});
  train(6, 8, 1e-3f, 2);
  log_->stop(8, "SIGTERM");
  const OrderedJson report = json();
  ASSERT_EQ(report.at("failures").size(), 1u) << report.dump(1);
  EXPECT_EQ(report.at("failures")[0].at("rank"), 1);
  EXPECT_EQ(report.at("failures")[0].at("reason"), killed);
  EXPECT_EQ(report.at("hosts_lost").size(), 1u);
}

TEST_F(ReportEvents, WorkersThatStopForANewcomerHaveNotStopped) {
  train(0, 5, 1e-3f);
  testing::internal::CaptureStdout();  // where logs go that nobody set up
  log_->stop(5, "regroup");
  const std::string told = testing::internal::GetCapturedStdout();
  EXPECT_EQ(told.find("run again"), std::string::npos) << told;
  EXPECT_EQ(told.find("saved"), std::string::npos) << told;
  EXPECT_NE(told.find("step 5: the workers stop to take in another machine"), std::string::npos)
      << told;
  EXPECT_TRUE(says("stopped       to take in another machine, and training has not begun again"));
  EventLog(config_.run.dir).append("host_joined", {{"machine", "node-b"}, {"generation", 2}});
  EventLog(config_.run.dir).append("generation", {{"generation", 2}, {"cause", "regrouped"}});
  train(5, 6, 1e-3f, 2);
  log_->stop(6, "done");
  EXPECT_EQ(json().at("failures").size(), 0u);
  EXPECT_TRUE(says("stopped       done"));
}

// After the loss was once better, and once.
TEST_F(ReportEvents, ALossWorseThanAGuessIsAnAlarm) {
  train(0, 1, 1e-3f);
  log_->set_scale({.flops_per_token = 1e6, .guess_loss = 3, .ceiling_flops = 4e9});
  int64_t step = 1;
  const auto steps = [&](float loss, int64_t count) {
    for (; count > 0; --count) {
      log_->step({.step = ++step, .loss = loss, .grad_norm = 1}, {}, 1, Clock::now(), 1000);
    }
  };
  const auto alarms = [&] {
    const std::string events = read_file(fs::path(config_.run.dir) / "events.jsonl");
    int64_t count = 0;
    for (size_t at = 0; (at = events.find("\"alarm\"", at)) != events.npos; ++at) ++count;
    return count;
  };
  steps(9, 10);
  EXPECT_EQ(alarms(), 0) << "a wide model begins so";
  steps(2, 1);
  steps(9, 4);
  steps(3.5F, 1);
  EXPECT_EQ(alarms(), 0);
  steps(9, 20);
  EXPECT_EQ(alarms(), 1);
}

TEST_F(ReportEvents, TellsCheckpointsThatWerePassedOverAndEvaluations) {
  train(0, 4, 1e-3f);
  EventLog(config_.run.dir).append("checkpoint_skip", {{"step", 3}, {"reason", "bad sum"}});
  const EvaluatedScore score = {.task = "piqa", .metric = "acc", .value = 0.5, .error = 0.25};
  log_->evaluation(2, "piqa", {score}, 1.5);
  log_->evaluation(4, "piqa", {score}, 1.5);
  EXPECT_TRUE(log_->has_evaluation(4, "piqa"));
  EXPECT_FALSE(log_->has_evaluation(3, "piqa"));
  train(3, 5, 1e-3f);  // step 4 was lost
  EXPECT_TRUE(says("passed over   the checkpoint of step 3: bad sum\n")) << text();
  EXPECT_TRUE(says("piqa, acc     0.5000 ± 0.2500 at step 2 (1 in all)\n")) << text();
  EXPECT_EQ(json().at("evaluations").size(), 1u);
}

// Whatever text a stop has is told as it is.
TEST_F(ReportEvents, TellsTheReasonOfAStop) {
  train(0, 5, 1e-3f);
  EventLog(config_.run.dir)
      .append("stop", {{"step", 5}, {"reason", "SIGINT twice: nothing was saved"}});
  EXPECT_TRUE(says("stopped       SIGINT twice: nothing was saved\n")) << text();
}

TEST_F(ReportEvents, TellsLearningRatesChangesAndTheBestValidation) {
  train(0, 4, 1e-3f);
  log_->validation({.step = 2, .set = "", .loss = 1.5, .num_tokens = 1000, .seconds = 0.1});
  log_->validation({.step = 4, .set = "", .loss = 1.25, .num_tokens = 1000, .seconds = 0.1});
  log_->validation({.step = 4, .set = "code", .loss = 0.75, .num_tokens = 1000, .seconds = 0.1});
  const Change change{"optimizer.learning_rate", "0.001", "0.002"};
  train(4, 6, 2e-3f, 1, {&change, 1});
  log_->validation({.step = 6, .set = "", .loss = 1.75, .num_tokens = 1000, .seconds = 0.1});
  train(6, 8, 5e-4f);
  const OrderedJson report = json();
  EXPECT_EQ(report.at("learning_rate").dump(),
            R"({"first":0.001,"peak":0.002,"peak_step":5,"last":0.0005})");
  EXPECT_EQ(report.at("best_validation_loss"), 1.25);
  EXPECT_EQ(report.at("best_validation_step"), 4);
  EXPECT_EQ(report.at("best_validations").dump(),
            R"([{"step":4,"loss":1.25},{"step":4,"loss":0.75,"set":"code"}])");
  EXPECT_EQ(report.at("changes").dump(),
            R"([{"step":4,"key":"optimizer.learning_rate","before":"0.001","after":"0.002"}])");
  EXPECT_TRUE(says("learning rate 0.001 at step 1, peak 0.002 at step 5, 0.0005 at step 8\n"))
      << text();
  EXPECT_TRUE(says("validation    1.7500 at step 6 (3 in all); best 1.2500 at step 4\n")) << text();
  EXPECT_TRUE(says("changed       after step 4: optimizer.learning_rate from 0.001 to 0.002\n"))
      << text();
}

// The machine was busy when the first start measured it, and a later one found it four times as
// fast: all steps are shares of that.
TEST_F(ReportEvents, SharesAreOfTheHighestCeilingOfTheMachine) {
  train(0, 4, 1e-3f);  // 1e9 of 4e9 FLOP/s
  log_->step({.step = 5, .loss = 2, .grad_norm = 1}, {}, 0.125, Clock::now(), 1000);  // 8e9
  OrderedJson report = json();
  EXPECT_FLOAT_EQ(report.at("median_matmul_ceiling_share"), 0.125f);
  EXPECT_EQ(report.at("median_model_flops_utilization"), report.at("median_matmul_ceiling_share"));
  EXPECT_FLOAT_EQ(report.at("ceiling_flops"), 8e9);
  for (const StepMetrics& metrics : read_report(config_.run.dir).steps) {
    EXPECT_LE(metrics.matmul_ceiling_share, 1.0f);
  }
}

// Files of versions that let a share be above 1, and did not write the ceiling of a step.
TEST_F(ReportEvents, OldFilesHaveNoShareAboveOneEither) {
  fs::create_directories(config_.run.dir);
  EventLog(config_.run.dir)
      .append("start", {{"number", 1}, {"step", 0}, {"ranks", 1}, {"ceiling_flops", 1e9}});
  MetricsLog metrics(config_.run.dir);
  for (int step = 1; step <= 3; ++step) {
    metrics.append({.step = step,
                    .loss = 1,
                    .matmul_ceiling_share = step == 1 ? 8.0f : 4.0f,
                    .time = unix_time(),
                    .start = 1,
                    .clock = 1});
  }
  EXPECT_FLOAT_EQ(json().at("median_matmul_ceiling_share"), 0.5f);
  EXPECT_FLOAT_EQ(json().at("ceiling_flops"), 8e9);
}

// As of a small model: many norms are more than 0.1 above the mean of those before.
TEST_F(ReportEvents, SpikesOfANormThatIsNoiseAreNotListed) {
  fs::create_directories(config_.run.dir);
  std::mt19937 random(1);
  std::lognormal_distribution<float> norm(1.5f, 0.4f);
  MetricsLog metrics(config_.run.dir);
  for (int step = 1; step <= 300; ++step) {
    metrics.append({.step = step, .loss = 1, .grad_norm = step == 200 ? 90 : norm(random)});
  }
  const OrderedJson report = json();
  EXPECT_GT(report.at("grad_spikes")[0].at("count"), 20);
  EXPECT_EQ(report.at("grad_spikes_above_noise").dump(), R"([{"length":1,"count":1}])");
  EXPECT_TRUE(says("grad spikes   1 of 1 step; 100% last one step; 1 alarm\n")) << text();
}

}  // namespace
}  // namespace skein
