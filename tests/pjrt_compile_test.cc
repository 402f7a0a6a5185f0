// Compiled programs with device.kind = "pjrt": kept for the next start, compiled ahead of time, and
// what happens if the compiler or the plugin fails. Skipped where there is no plugin.
#include "skein/backends/backend.h"
#include "tests/parallel_job.h"
#include "tests/pjrt/plugin.h"
#include "tests/places.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 12;

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

std::string plugin() { return pjrt_test::plugin_path(kSourceFolder); }

Overrides on(const std::string& plugin, const Overrides& more) {
  return Overrides{fmt::format("run.steps={}", kSteps), "precision.mode=fp32", "device.kind=pjrt",
                   "device.pjrt_plugin=" + plugin} +
         more;
}

// All runs of this file but those of a cache of their own share one.
Overrides on_pjrt(const Overrides& more = {}) { return on(plugin(), more); }

// With the plugin that lets others fail; `fault` as in tests/pjrt/faulty_plugin. The products that
// measure the device, of two arguments, do not count.
Overrides on_faulty(const std::string& name, const std::string& fault, const Overrides& more) {
  ::setenv("SKEIN_FAULTY_PJRT_PLUGIN", plugin().c_str(), 1);
  const std::string counts = (job().folder / (name + "-count")).string();
  ::setenv("SKEIN_FAULTY_PJRT", (fault + " " + counts + " 3").c_str(), 1);
  return on(pjrt_test::faulty_plugin(), more);
}

class PjrtCompile : public testing::Test {
 protected:
  void SetUp() override {
    const Backend& backend = find_backend_to_plan("pjrt");
    if (!backend.only_plans.empty()) GTEST_SKIP() << backend.only_plans;
    if (plugin().empty()) GTEST_SKIP() << "no PJRT plugin: scripts/test_tools.sh unpacks one";
  }
  void TearDown() override { ::unsetenv("SKEIN_FAULTY_PJRT"); }
};

// The line of a start on its programs.
struct Line {
  std::string text;
  int programs = 0, cached = 0;
  double seconds = 0, cached_seconds = 0;
};

Line line_of(const std::string& output) {
  Line line;
  const size_t begin = output.find("compiled ");
  if (begin == output.npos) return line;
  line.text = output.substr(begin, output.find('\n', begin) - begin);
  std::sscanf(line.text.c_str(), "compiled %d ", &line.programs);
  const size_t in = line.text.find(" in ");
  if (in != line.text.npos) std::sscanf(line.text.c_str() + in, " in %lf s", &line.seconds);
  const size_t of = line.text.find(" s, ");
  if (of == line.text.npos) return line;
  std::sscanf(line.text.c_str() + of, " s, %d of them", &line.cached);
  const size_t folder = line.text.find(") in ");
  if (folder == line.text.npos) return line;
  std::sscanf(line.text.c_str() + folder, ") in %lf s", &line.cached_seconds);
  return line;
}

void expect_all_from_cache(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Line line = line_of(outcome.err);
  EXPECT_GT(line.programs, 0) << outcome.err;
  EXPECT_EQ(line.cached, line.programs) << line.text;
}

Overrides cache_in(const std::string& name) {
  return {"device.compile_cache=" + (job().folder / name).string()};
}

// The losses of a run that nothing disturbed.
const Curve& undisturbed() {
  static const Curve curve = [] {
    job().trained("undisturbed", on_pjrt());
    return read_curve(job().run("undisturbed"));
  }();
  return curve;
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_F(PjrtCompile, TheSecondStartCompilesNothing) {
  const Outcome first = job().train("first", on_pjrt(cache_in("kept")));
  const Line line = line_of(first.err);
  EXPECT_GT(line.programs, 0) << first.err;
  EXPECT_EQ(line.cached, 0) << line.text;
  const Outcome second = job().train("second", on_pjrt(cache_in("kept")));
  expect_all_from_cache(second);
  EXPECT_LT(line_of(second.err).seconds, line.seconds);
  EXPECT_EQ(different_bits(read_curve(job().run("first")), read_curve(job().run("second"))), "");
}

TEST_F(PjrtCompile, AheadOfTimeLeavesNothingToCompile) {
  const Overrides overrides =
      on_pjrt(cache_in("compiled_ahead") +
              Overrides{"data.validation=" + job().corpus().string(), "validate.batches=2"});
  Arguments arguments = job().arguments("compile", "ahead", overrides);
  arguments.insert(arguments.end(), {"--jobs", "2"});
  const Outcome ahead = run_skein(arguments);
  EXPECT_EQ(ahead.exit_code, 0) << ahead.err;
  EXPECT_TRUE(has(ahead.err, "forward: compiled in ")) << ahead.err;
  EXPECT_GT(line_of(ahead.out).programs, 0) << ahead.out;
  EXPECT_FALSE(fs::exists(job().run("ahead")));
  const Outcome outcome = job().train("ahead", overrides);
  expect_all_from_cache(outcome);
  EXPECT_EQ(line_of(outcome.err).programs, line_of(ahead.out).programs);
}

// Each process has programs of its own: those of its stage, and of its place among the ranks.
TEST_F(PjrtCompile, AheadOfTimeIsForEveryProcess) {
  for (const Overrides& layout : {Overrides{"parallel.data=2", "launch.workers_per_process=1"},
                                  Overrides{"parallel.pipeline=2"}}) {
    const Overrides overrides =
        on_pjrt(cache_in("processes") + layout +
                Overrides{"launch.workers=2", "launch.health_checks=false"});
    EXPECT_EQ(run_skein(job().arguments("compile", "processes", overrides)).exit_code, 0);
    expect_all_from_cache(job().train("processes", overrides));
    const Line second = line_of(read_file(job().run("processes") / "logs" / "rank-00001.log"));
    EXPECT_GT(second.programs, 0);
    EXPECT_EQ(second.cached, second.programs) << second.text;
    fs::remove_all(job().run("processes"));
  }
}

TEST_F(PjrtCompile, AheadOfTimeRefusesWhatCompilesNothing) {
  expect_refused(run_skein(job().arguments("compile", "refused", {"device.kind=cpu"})), 2,
                 {"device.kind is \"cpu\"", "expected \"pjrt\""});
  expect_refused(
      run_skein(job().arguments("compile", "refused", on_pjrt({"device.compile_cache=off"}))), 2,
      {"device.compile_cache is \"off\""});
}

TEST_F(PjrtCompile, NoCacheIsMadeWhereItIsOff) {
  const Outcome outcome = job().train("off", on_pjrt({"device.compile_cache=off"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "from the cache")) << outcome.err;
}

TEST_F(PjrtCompile, DamagedFilesAreCompiledAgain) {
  const Overrides overrides = on_pjrt(cache_in("damaged"));
  job().trained("damaged0", overrides);
  int num_files = 0;
  for (const auto& entry : fs::directory_iterator(job().folder / "damaged")) {
    const std::string file = read_file(entry.path());
    write_file_atomic(entry.path(), num_files++ % 2 == 0 ? file.substr(0, file.size() / 2)
                                                         : "skein-executable 2" + file.substr(18));
  }
  const Outcome outcome = job().train("damaged1", overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(line_of(outcome.err).cached, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "and is compiled again: it has ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "its format has version 2, expected 1")) << outcome.err;
  expect_all_from_cache(job().train("damaged2", overrides));
  EXPECT_EQ(different_bits(undisturbed(), read_curve(job().run("damaged2"))), "");
}

TEST_F(PjrtCompile, TrainsWhereTheCacheCannotBeWritten) {
  std::ofstream(job().folder / "no_folder") << "a file\n";
  const Outcome outcome = job().train("unwritable", on_pjrt(cache_in("no_folder/cache")));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string words = "compiled programs are not kept for the next start: ";
  EXPECT_TRUE(has(outcome.err, words)) << outcome.err;
  EXPECT_EQ(outcome.err.find(words), outcome.err.rfind(words)) << outcome.err;  // one line
}

TEST_F(PjrtCompile, ACompilerThatHangsEndsTheRun) {
  const Overrides overrides =
      on_faulty("hang", "hang 2", {"device.compile_timeout_s=5", "device.compile_cache=off"});
  const Outcome outcome = job().train("hang", overrides);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const auto lines = outcome.error_lines();
  ASSERT_EQ(lines.size(), 1u) << outcome.err;
  for (const char* words : {"the program ", " of StableHLO: the compiler of cpu ",
                            "has not ended after 5.0 s, device.compile_timeout_s"}) {
    EXPECT_TRUE(has(lines[0], words)) << lines[0];
  }
}

TEST_F(PjrtCompile, ACompilerWithoutMemoryEndsTheRun) {
  const Overrides overrides = on_faulty("memory", "compile 2", {"device.compile_cache=off"});
  const Outcome outcome = job().train("memory", overrides);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, " of StableHLO: the PJRT plugin ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "no memory is left for the compiler")) << outcome.err;
}

// Of a program that cannot be started, and of one whose results never come.
TEST_F(PjrtCompile, APluginThatFailsInAStepIsNamedWithProgramAndOps) {
  for (const std::string fault : {"execute", "result"}) {
    const Overrides overrides = on_faulty(fault, fault + " 40", {});
    const Outcome outcome = job().train(fault, overrides);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "step ")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, ": in ops 0 to ")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, " of program '")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "the core is on fire")) << outcome.err;
  }
}

// A failure of the plugin costs the steps since the last checkpoint, and no bits.
TEST_F(PjrtCompile, ASupervisedRunOutlivesAPluginThatFails) {
  const Overrides overrides =
      on_faulty("supervised", "result 40", {"launch.supervise=true", "checkpoint.every_steps=2"});
  const Outcome outcome = job().train("supervised", overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "the core is on fire")) << outcome.err;
  EXPECT_EQ(different_bits(undisturbed(), read_curve(job().run("supervised"))), "");
}

TEST_F(PjrtCompile, AKilledWorkerGoesOnWithTheSameLosses) {
  SkeinProcess process(job().arguments(
      "train", "killed", on_pjrt({"launch.supervise=true", "checkpoint.every_steps=2"})));
  const fs::path metrics = job().run("killed") / "metrics.jsonl";
  EXPECT_TRUE(
      wait_until([&] { return fs::exists(metrics) && read_json_lines(metrics).size() > 4; }));
  const pid_t worker = worker_of(process.pid(), 0);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "was killed by signal 9 (SIGKILL)")) << outcome.err;
  EXPECT_EQ(different_bits(undisturbed(), read_curve(job().run("killed"))), "");
}

TEST_F(PjrtCompile, LossesDoNotDependOnWhatIsInFlight) {
  job().trained("in_turn", on_pjrt({"device.executions_in_flight=0"}));
  EXPECT_EQ(different_bits(undisturbed(), read_curve(job().run("in_turn"))), "");
}

TEST_F(PjrtCompile, RefusesALevelThatIsNone) {
  expect_refused(job().train("level", on_pjrt({"device.optimization_level=fast"})), 2,
                 {"device.optimization_level is \"fast\"", "expected 0, 1, 2 or 3"});
}

}  // namespace
}  // namespace skein
