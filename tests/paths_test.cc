// Folders and files that the system refuses: one line that names the setting and the path, never
// an "internal error", and nothing left behind.
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// As a user whom permissions bind: without the powers of root over files.
Outcome run_bound(const Arguments& arguments) {
  if (::geteuid() != 0) return run_skein(arguments);
  Arguments wrapped = {"--bounding-set=-dac_override,-dac_read_search", default_program()};
  wrapped.insert(wrapped.end(), arguments.begin(), arguments.end());
  return SkeinProcess(wrapped, SkeinProcess::kNoFileLimit, "/usr/bin/setpriv").wait();
}

// Folders to forbid; they can be removed again.
class Folders : public testing::Test {
 protected:
  fs::path forbidden(const std::string& name, fs::perms permissions) {
    fs::create_directories(job().run(name) / "below");
    fs::permissions(job().run(name), permissions);
    forbidden_.push_back(job().run(name));
    return job().run(name);
  }
  ~Folders() override {
    for (const fs::path& path : forbidden_) {
      fs::permissions(path, fs::perms::owner_all);
      fs::remove_all(path);
    }
  }
  std::vector<fs::path> forbidden_;
};

TEST_F(Folders, ARunFolderThatCannotBeIsRefusedByName) {
  const fs::path file = job().folder / "file";
  std::ofstream(file) << "x";
  const fs::path read_only = forbidden("read_only", fs::perms::owner_read | fs::perms::owner_exec);
  const fs::path no_entry = forbidden("no_entry", fs::perms::none);
  const struct {
    const char* key;
    fs::path path;
    Words words;
  } cases[] = {
      {"run.dir", file, {"run.dir is '" + file.string() + "'", "is not a folder"}},
      {"run.dir", file / "a/b", {"run.dir is '", "file is not a folder"}},
      {"run.dir", read_only, {"run.dir is '", "cannot write in", "Permission denied (13)"}},
      {"run.dir", read_only / "x", {"run.dir is '", "cannot write in", "Permission denied (13)"}},
      {"run.dir", no_entry / "below/x", {"run.dir is '", "cannot look at", "Permission denied"}},
      {"run.dir", "/proc/sys/kernel/x", {"run.dir is '/proc/sys/kernel/x'", "cannot write in"}},
      {"checkpoint.dir", file, {"checkpoint.dir is '" + file.string(), "is not a folder"}},
      {"checkpoint.dir", read_only / "x", {"checkpoint.dir is '", "Permission denied (13)"}},
  };
  for (const char* workers : {"1", "2"}) {
    for (const auto& refused : cases) {
      SCOPED_TRACE(refused.path.string());
      const auto arguments =
          job().arguments("train", "fresh",
                          {std::string(refused.key) + "=" + refused.path.string(),
                           std::string("launch.workers=") + workers});
      expect_refused(run_bound(arguments), 2, refused.words);
      EXPECT_FALSE(fs::exists(job().run("fresh")));
    }
  }
}

TEST_F(Folders, WhatStandsInTheWayInARunFolderIsNamed) {
  for (const char* name : {"logs", "logs/rank-00000.log", "metrics.jsonl", "checkpoints"}) {
    SCOPED_TRACE(name);
    const fs::path run = job().run("blocked");
    fs::remove_all(run);
    const fs::path in_the_way = run / name;
    fs::create_directories(in_the_way.parent_path());
    if (in_the_way.extension().empty()) {
      std::ofstream(in_the_way) << "a file";
    } else {
      fs::create_directories(in_the_way);
    }
    const Outcome outcome = job().train("blocked");
    expect_refused(outcome, 1, {in_the_way.string()});
    EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("filesystem error"), std::string::npos) << outcome.err;
  }
}

TEST_F(Folders, UnreadableFoldersAreNamedByEveryCommand) {
  const std::string run = forbidden("no_entry", fs::perms::none).string();
  const std::string below = run + "/below";
  const std::string corpus = job().corpus().string();
  const Arguments commands[] = {
      {"report", below},
      {"checkpoint", "list", below},
      {"checkpoint", "verify", below, "--json"},
      {"checkpoint", "export", below, "--out", (job().folder / "hf").string()},
      {"score", "--model", below, "--tokens", below},
      {"generate", "--model", below, "--prompt", "a"},
      {"data", "stats", corpus, "--tokenizer", below},
      {"data", "tokenizer", "--vocab-size", "320", "--out", below + "/x", corpus},
      {"data", "ingest", "--out", below + "/x/c.arrow",
       (job().folder / "documents.jsonl").string()},
  };
  for (const Arguments& arguments : commands) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(arguments, " ")));
    const Outcome outcome = run_bound(arguments);
    const bool names_the_option = outcome.err.find("--out") != std::string::npos;
    expect_refused(outcome, names_the_option ? 2 : 1, {below, "Permission denied (13)"});
    EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
  }
}

TEST_F(Folders, TheTildeInAConfigurationIsTheHomeFolder) {
  setenv("HOME", job().folder.path().c_str(), 1);
  const Outcome outcome = job().train("home", {"run.dir=~/home", "run.steps=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(job().run("home") / "metrics.jsonl"));
  EXPECT_FALSE(fs::exists("~"));
  const std::string config = read_file(job().run("home") / "config.toml");
  EXPECT_EQ(config.find('~'), std::string::npos) << config;
}

// Results that a full disk did not take are no success.
TEST_F(Folders, ScoresAndTextsThatDoNotArriveAreAFailure) {
  job().trained("model", {"run.steps=1"});
  const std::string tokens = (job().folder / "tokens.json").string();
  std::ofstream(tokens) << "[[1, 2, 3]]";
  const std::string model = job().run("model").string();
  for (const std::string& command :
       {fmt::format("score --model '{}' --tokens '{}'", model, tokens),
        fmt::format("generate --model '{}' --prompt a --max-tokens 3", model),
        fmt::format("data sample '{}' --step 1 --json", job().config().string()),
        fmt::format("checkpoint list '{}'", model)}) {
    SCOPED_TRACE(command);
    const std::string script = fmt::format("'{}' {} > /dev/full", default_program(), command);
    const Outcome outcome =
        SkeinProcess({"-c", script}, SkeinProcess::kNoFileLimit, "/bin/bash").wait();
    expect_refused(outcome, 1, {"cannot write to standard output", "No space left on device"});
  }
}

// What is asked for and has no effect yet is said, by one rank, and only where it was asked for.
TEST_F(Folders, SettingsWithoutEffectAreSaid) {
  const Outcome outcome =
      job().train("idle", {"run.steps=1", "launch.max_restarts=7", "launch.hang_timeout_s=30"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("launch.max_restarts = 7 has no effect"), std::string::npos);
  EXPECT_NE(outcome.err.find("launch.hang_timeout_s = 30 has no effect"), std::string::npos);
  const Outcome silent = job().train("silent", {"run.steps=1"});
  EXPECT_EQ(silent.err.find("no effect"), std::string::npos) << silent.err;
}

// On a terminal, where Ctrl-C is, and in a log: what became of the run and how it goes on.
TEST_F(Folders, AStopSaysHowToGoOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = fmt::format("stopped-{}", signal);
    SkeinProcess process(job().arguments("train", name, {"run.steps=900000"}));
    while (read_json_lines(job().run(name) / "metrics.jsonl").empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    const int64_t step = read_curve(job().run(name)).rbegin()->first;
    EXPECT_NE(outcome.err.find(fmt::format("stopped by {} at step {}, saved; run again to continue",
                                           signal == SIGINT ? "SIGINT" : "SIGTERM", step)),
              std::string::npos)
        << outcome.err.substr(outcome.err.size() - 500);
  }
}

}  // namespace
}  // namespace skein
