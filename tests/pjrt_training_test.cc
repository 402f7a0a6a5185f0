// Training with device.kind = "pjrt": a plugin compiles the step's programs and runs them. Skipped
// where there is no plugin.
#include "skein/backends/backend.h"
#include "tests/pjrt/plugin.h"
#include "tests/places.h"
#include "tests/trained_job.h"

namespace skein {
namespace {

const TrainedJob& job() {
  static const TrainedJob job;
  return job;
}

std::string plugin() { return pjrt_test::plugin_path(kSourceFolder); }

// By step; the last object for a step counts.
std::map<int64_t, double> losses_of(const fs::path& run) {
  std::map<int64_t, double> losses;
  for (const OrderedJson& json : read_json_lines(run / "metrics.jsonl")) {
    if (json.contains("loss")) losses[json.at("step")] = json.at("loss");
  }
  return losses;
}

Overrides on_pjrt(Overrides more, const char* precision = "fp32") {
  more.insert(more.end(), {"device.kind=pjrt", "device.pjrt_plugin=" + plugin()});
  return TrainedJob::with(more, precision);
}

class PjrtTraining : public testing::Test {
 protected:
  void SetUp() override {
    const Backend& backend = find_backend_to_plan("pjrt");
    if (!backend.only_plans.empty()) GTEST_SKIP() << backend.only_plans;
    if (plugin().empty()) {
      GTEST_SKIP() << "no PJRT plugin: scripts/test_tools.sh unpacks one";
    }
  }
};

void expect_near(const std::map<int64_t, double>& curve, const std::map<int64_t, double>& want,
                 double relative) {
  ASSERT_EQ(curve.size(), want.size());
  for (const auto& [step, loss] : want) {
    EXPECT_NEAR(curve.at(step), loss, relative * loss) << "step " << step;
  }
}

TEST_F(PjrtTraining, HasTheLossesOfTheCpu) {
  const Overrides twenty = {"run.steps=20"};
  job().trained("cpu20", TrainedJob::with(twenty));
  job().trained("pjrt20", on_pjrt(twenty));
  expect_near(losses_of(job().run("pjrt20")), losses_of(job().run("cpu20")), 1e-5);
}

TEST_F(PjrtTraining, AStepOfOneMicroBatchIsOneProgram) {
  const Overrides one = {"run.steps=20", "batch.micro_sequences=4", "validate.every_steps=10",
                         "validate.batches=2", "data.validation=" + job().corpus().string()};
  job().trained("cpu_one", TrainedJob::with(one));
  const Outcome outcome = job().train("pjrt_one", on_pjrt(one));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // The step, evaluation, and the product that measures the ceiling.
  EXPECT_NE(outcome.err.find("compiled 3 programs"), std::string::npos) << outcome.err;
  expect_near(losses_of(job().run("pjrt_one")), losses_of(job().run("cpu_one")), 1e-5);
}

TEST_F(PjrtTraining, RoundsStochasticallyAsTheCpuDoes) {
  const Overrides twenty = {"run.steps=20"};
  job().trained("cpu_sr", TrainedJob::with(twenty, "bf16-sr"));
  job().trained("pjrt_sr", on_pjrt(twenty, "bf16-sr"));
  expect_near(losses_of(job().run("pjrt_sr")), losses_of(job().run("cpu_sr")), 5e-3);
}

TEST_F(PjrtTraining, GoesOnFromACheckpointOfTheCpuAndBack) {
  job().trained("whole", TrainedJob::with({"run.steps=8"}));
  job().copy_run("there");
  job().trained("there", on_pjrt({"run.steps=6"}));
  job().trained("there", TrainedJob::with({"run.steps=8"}));
  expect_near(losses_of(job().run("there")), losses_of(job().run("whole")), 1e-5);
}

TEST_F(PjrtTraining, RefusesWhatIsNoPlugin) {
  const auto refused = [](const std::string& path) {
    return job().train("refused",
                       TrainedJob::with({"device.kind=pjrt", "device.pjrt_plugin=" + path}));
  };
  const Outcome missing = refused("/nowhere/plugin.so");
  EXPECT_EQ(missing.exit_code, 2) << missing.err;
  EXPECT_NE(missing.err.find("device.pjrt_plugin is '/nowhere/plugin.so', which is not there"),
            std::string::npos)
      << missing.err;
  const Outcome other = refused("libm.so.6");
  EXPECT_NE(other.exit_code, 0);
  const Outcome none = refused("");
  EXPECT_EQ(none.exit_code, 2) << none.err;
}

}  // namespace
}  // namespace skein
