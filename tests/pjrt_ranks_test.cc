// Several ranks with device.kind = "pjrt": workers that share a process, whose collectives are part
// of the compiled programs, and processes whose collectives the host runs between them. Losses are
// those of one worker on the CPU. Skipped where there is no plugin.
#include "skein/backends/backend.h"
#include "tests/parallel_job.h"
#include "tests/pjrt/plugin.h"
#include "tests/places.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 4;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

std::string plugin() { return pjrt_test::plugin_path(kSourceFolder); }

Overrides setting(const Overrides& more) {
  Overrides all = ParallelJob::setting(kSteps);
  all.emplace_back("model.num_hidden_layers=2");
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Overrides on_pjrt(const Overrides& more) {
  Overrides all = setting(more);
  all.insert(all.end(), {"device.kind=pjrt", "device.pjrt_plugin=" + plugin()});
  return all;
}

// By step; the last object for a step counts.
std::map<int64_t, double> losses_of(const std::string& name) {
  std::map<int64_t, double> losses;
  for (const OrderedJson& json : read_json_lines(job().run(name) / "metrics.jsonl")) {
    if (json.contains("loss")) losses[json.at("step")] = json.at("loss");
  }
  return losses;
}

const std::map<int64_t, double>& losses_of_one_worker() {
  static const std::map<int64_t, double> losses = [] {
    job().trained("alone", setting({"device.kind=cpu"}));
    return losses_of("alone");
  }();
  return losses;
}

void expect_same_losses(const std::string& name) {
  const std::map<int64_t, double> found = losses_of(name);
  ASSERT_EQ(std::ssize(found), kSteps) << name;
  for (const auto& [step, loss] : losses_of_one_worker()) {
    EXPECT_NEAR(found.at(step), loss, 1e-5 * loss) << name << ", step " << step;
  }
}

struct Ranks {
  const char* name;
  Overrides overrides;
  std::string_view processes;  // what the log of the first one says of its ranks
};
void PrintTo(const Ranks& ranks, std::ostream* out) { *out << ranks.name; }

class PjrtRanks : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    const Backend& backend = find_backend_to_plan("pjrt");
    if (!backend.only_plans.empty()) GTEST_SKIP() << backend.only_plans;
    if (plugin().empty()) GTEST_SKIP() << "no PJRT plugin: scripts/test_tools.sh unpacks one";
  }
};

TEST_P(PjrtRanks, HaveTheLossesOfOneWorkerOnTheCpu) {
  const Ranks& ranks = GetParam();
  job().trained(ranks.name, on_pjrt(ranks.overrides));
  expect_same_losses(ranks.name);
  const std::string log = read_file(job().run(ranks.name) / "logs/rank-00000.log");
  EXPECT_NE(log.find(ranks.processes), std::string::npos) << log;
  job().remove(ranks.name);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, PjrtRanks,
    testing::Values(Ranks{"FourDevicesOfAProcess",
                          {"launch.workers=4", "parallel.tensor=2", "parallel.zero=2"},
                          "ranks 0 to 3 of 4"},
                    Ranks{"PipelineByProcesses",
                          {"launch.workers=4", "parallel.tensor=2", "parallel.pipeline=2"},
                          "ranks 0 to 1 of 4"},
                    Ranks{"ContextAndZero3ByProcesses",
                          {"launch.workers=4", "launch.workers_per_process=1", "parallel.context=2",
                           "parallel.zero=3"},
                          "rank 0 of 4"}),
    [](const auto& info) { return info.param.name; });

using PjrtRanksRefused = PjrtRanks;

TEST_P(PjrtRanksRefused, SayWhatWasExpected) {
  const Outcome outcome = job().run_for("refused", on_pjrt(GetParam().overrides));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find(GetParam().processes), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, PjrtRanksRefused,
    testing::Values(Ranks{"ProcessesThatDoNotDivide",
                          {"launch.workers=4", "launch.workers_per_process=3"},
                          "launch.workers_per_process is 3, which does not divide"},
                    Ranks{
                        "ProcessesOfSeveralStages",
                        {"launch.workers=4", "launch.workers_per_process=4", "parallel.pipeline=2"},
                        "expected a number that divides 2"},
                    Ranks{"UnequalShares",
                          {"launch.workers=3", "parallel.reduction_width=8"},
                          "expected launch.workers_per_process = 1"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skein
