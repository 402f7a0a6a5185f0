// Limits of a process, as a user's shell sets them, and cores that a job gets.
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// By a shell that says `before` first.
Outcome run_behind(const std::string& before, const Arguments& arguments) {
  Arguments wrapped = {"-c", before + "; exec \"$@\"", "sh", default_program()};
  wrapped.insert(wrapped.end(), arguments.begin(), arguments.end());
  return SkeinProcess(wrapped, SkeinProcess::kNoFileLimit, "/bin/sh").wait();
}

TEST(Limits, ASmallStackIsNoEnd) {
  job().trained("usual", {"run.steps=3"});
  for (const char* limit : {"ulimit -s 128", "ulimit -S -s 128", "ulimit -s 512"}) {
    for (const char* workers : {"1", "2"}) {
      const std::string name = fmt::format("{} {}", limit, workers);
      const Outcome outcome = run_behind(
          limit, job().arguments("train", name,
                                 {"run.steps=3", std::string("launch.workers=") + workers}));
      EXPECT_EQ(outcome.exit_code, 0) << name << outcome.err;
      EXPECT_EQ(read_curve(job().run(name)), read_curve(job().run("usual")));
    }
    // Signals reach the thread that has the stack.
    SkeinProcess stopped({"-c", std::string(limit) + "; exec \"$@\"", "sh", default_program(),
                          "train", job().config().string(), "--set",
                          "run.dir=" + job().run(limit).string(), "--set", "run.steps=100000"},
                         SkeinProcess::kNoFileLimit, "/bin/sh");
    const fs::path metrics = job().run(limit) / "metrics.jsonl";
    ASSERT_TRUE(wait_until([&] { return !read_json_lines(metrics).empty(); }));
    stopped.send(SIGTERM);
    EXPECT_EQ(stopped.wait().exit_code, 75);
    expect_checkpoints_good(job().run(limit));
  }
  const Outcome help = run_behind("ulimit -s 128", {"train", "--help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
}

TEST(Limits, AJobComputesWithTheCoresThatItAsksFor) {
  const auto script = [](Arguments options) {
    Arguments arguments = {"launch",  "--slurm",         job().config().string(),
                           "--print", "--set",           "run.dir=" + job().run("slurm").string(),
                           "--set",   "launch.workers=2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return TinyJob::must(arguments).out;
  };
  const auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string usual = script({});
  EXPECT_TRUE(holds(usual, "--cpus-per-task=2\n") && holds(usual, "device.threads=1")) << usual;
  const std::string more = script({"--cpus", "9"});
  EXPECT_TRUE(holds(more, "--cpus-per-task=9\n") && holds(more, "device.threads=4")) << more;
  const std::string said = script({"--set", "device.threads=3"});
  EXPECT_TRUE(holds(said, "--cpus-per-task=6\n") && holds(said, "device.threads=3")) << said;
  for (const char* option : {"--exclusive", "--cpus-per-task=16"}) {
    const std::string own = script({std::string("--sbatch=") + option});
    EXPECT_FALSE(holds(own, "device.threads")) << own;
  }
}

}  // namespace
}  // namespace skein
