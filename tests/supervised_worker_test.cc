// A single worker with launch.supervise: a process of its own that is started again as one of
// several is, to the same bits, and that ends as one without a supervisor does.
#include <fstream>
#include <iterator>

#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 60;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

Overrides setting() {
  return ParallelJob::setting(kSteps) + Overrides{"checkpoint.every_steps=7", "checkpoint.keep=2"};
}

Overrides supervised() { return setting() + Overrides{"launch.supervise=true"}; }

const std::string& whole() {
  static const std::string name = [] {
    job().trained("whole", setting());
    return std::string("whole");
  }();
  return name;
}

void expect_same_bits(const std::string& name) {
  EXPECT_EQ(different_bits(read_curve(job().run(whole())), read_curve(job().run(name))), "");
  EXPECT_EQ(different_state(job().checkpoint(whole(), kSteps), job().checkpoint(name, kSteps)), "");
}

int64_t last_step(const std::string& name) {
  if (!fs::exists(job().run(name) / "metrics.jsonl")) return 0;
  const Curve curve = read_curve(job().run(name));
  return curve.empty() ? 0 : curve.rbegin()->first;
}

std::vector<OrderedJson> events_of(const std::string& name, const std::string& event) {
  std::vector<OrderedJson> found;
  for (const OrderedJson& json : read_json_lines(job().run(name) / "events.jsonl")) {
    if (json.at("event") == event) found.push_back(json);
  }
  return found;
}

// Sends a signal to the worker once the run is at `step`, and returns how the run ends.
Outcome hit(const std::string& name, int signal, int64_t step, const Overrides& overrides) {
  SkeinProcess process(job().arguments("train", name, supervised() + overrides));
  EXPECT_TRUE(wait_until([&] { return last_step(name) >= step; }));
  const pid_t worker = worker_of(process.pid(), 0);
  EXPECT_GT(worker, 0);
  if (worker > 0) ::kill(worker, signal);
  return process.wait(ParallelJob::kRunTimeoutS);
}

// What the supervisor and its worker have in their environment, started by env with `changes`.
std::string spins_of(const std::string& name, const Arguments& changes) {
  Arguments arguments = changes;
  arguments.push_back(default_program());
  const Arguments train = job().arguments("train", name, supervised());
  arguments.insert(arguments.end(), train.begin(), train.end());
  SkeinProcess process(arguments, SkeinProcess::kNoFileLimit, "/usr/bin/env");
  EXPECT_TRUE(wait_until([&] { return last_step(name) >= 1; }));
  std::string found;
  for (const pid_t pid : {process.pid(), worker_of(process.pid(), 0)}) {
    std::ifstream file(fmt::format("/proc/{}/environ", pid));
    for (std::string variable; std::getline(file, variable, '\0');) {
      if (variable.starts_with("GOMP_SPINCOUNT=")) found += variable + ";";
    }
    std::ifstream comm(fmt::format("/proc/{}/comm", pid));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(comm), {}), "skein\n");
  }
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 75);
  return found;
}

TEST(SupervisedWorker, StartsItselfWithBriefSpinsUnlessToldOtherwise) {
  const Arguments unset = {"-u", "OMP_WAIT_POLICY", "-u", "GOMP_SPINCOUNT"};
  EXPECT_EQ(spins_of("spins", unset), "GOMP_SPINCOUNT=10000;GOMP_SPINCOUNT=10000;");
  EXPECT_EQ(spins_of("policy", {"-u", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY=passive"}), "");
  EXPECT_EQ(spins_of("count", {"-u", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT=7"}),
            "GOMP_SPINCOUNT=7;GOMP_SPINCOUNT=7;");
}

TEST(SupervisedWorker, GoesOnFromMemoryAfterItWasKilled) {
  const Outcome outcome =
      hit("killed", SIGKILL, 20, {"checkpoint.memory_every_steps=1", "checkpoint.every_steps=0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 0 was killed by signal 9 (SIGKILL)"), std::string::npos)
      << outcome.err;
  const auto starts = events_of("killed", "start");
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_TRUE(starts[1].at("from").get<std::string>().starts_with("the copy of step "))
      << starts[1];
  expect_same_bits("killed");
}

TEST(SupervisedWorker, GoesOnFromStorageAfterItHung) {
  const Outcome outcome =
      hit("hung", SIGSTOP, 20, {"launch.hang_timeout_s=2", "checkpoint.memory_every_steps=0"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the threads of rank 0"), std::string::npos) << outcome.err;
  const auto starts = events_of("hung", "start");
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_NE(starts[1].at("from").get<std::string>().find("/checkpoints/step-"), std::string::npos);
  expect_same_bits("hung");
}

TEST(SupervisedWorker, StopSavesAndExitsWith75) {
  SkeinProcess process(job().arguments("train", "stopped", supervised()));
  ASSERT_TRUE(wait_until([] { return last_step("stopped") >= 10; }));
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 0u) << outcome.err;
  const int64_t stopped_at = last_step("stopped");
  EXPECT_LT(stopped_at, kSteps);
  EXPECT_TRUE(fs::exists(job().checkpoint("stopped", stopped_at) / "manifest.json"));
  job().trained("stopped", setting());  // and goes on without a supervisor
  expect_same_bits("stopped");
}

// A worker that is gone when the signal comes cannot save.
TEST(SupervisedWorker, AStopThatCannotSaveSaysSo) {
  SkeinProcess process(job().arguments("train", "lost", supervised()));
  ASSERT_TRUE(wait_until([] { return last_step("lost") >= 10; }));
  const pid_t worker = worker_of(process.pid(), 0);
  ASSERT_GT(worker, 0);
  process.send(SIGSTOP);  // hears of both at once
  ::kill(worker, SIGKILL);
  process.send(SIGTERM);
  process.send(SIGCONT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_NE(outcome.err.find("was killed by signal 9"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("resumes from the newest checkpoint"), std::string::npos)
      << outcome.err;
  job().trained("lost", setting());
  expect_same_bits("lost");
}

// Found by the parent, and by the worker alone.
TEST(SupervisedWorker, AMistakeEndsTheRunAtOnce) {
  expect_refused(job().train("wrong", supervised() + Overrides{"parallel.tensor=2"}), 2,
                 {"tensor"});
  EXPECT_FALSE(fs::exists(job().run("wrong")));
  const Overrides few = {"run.steps=7"};
  job().trained("changed", setting() + few);
  const Outcome outcome =
      job().train("changed", supervised() + Overrides{"model.num_hidden_layers=4"});
  expect_refused(outcome, 2, {"num_hidden_layers"});
  EXPECT_EQ(outcome.err.find("generation 2"), std::string::npos) << outcome.err;
}

TEST(SupervisedWorker, ALauncherStartsItInstead) {
  for (const char* variable : {"SKEIN_RANK=0", "SKEIN_SIZE=1", "SKEIN_LOCAL_RANK=0",
                               "SKEIN_LOCAL_SIZE=1", "SKEIN_START_ID=launched"}) {
    const std::string text = variable;
    setenv(text.substr(0, text.find('=')).c_str(), text.substr(text.find('=') + 1).c_str(), 1);
  }
  const Outcome outcome = job().train("launched", supervised() + Overrides{"run.steps=2"});
  for (const char* name :
       {"SKEIN_RANK", "SKEIN_SIZE", "SKEIN_LOCAL_RANK", "SKEIN_LOCAL_SIZE", "SKEIN_START_ID"}) {
    unsetenv(name);
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("launch.supervise = true has no effect"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace skein
