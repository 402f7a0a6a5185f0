// What a run writes down of itself: why it ended, however it ended; how often it read its text;
// that it stops with its terminal; what a resume goes on with; and that none of it grows.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "skein/checkpoint/find/reader.h"
#include "tests/parallel_job.h"
#include "tests/places.h"

namespace skein {
namespace {

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

Overrides small(int64_t steps) {
  return {fmt::format("run.steps={}", steps), "model.hidden_size=32",
          "model.intermediate_size=64",       "model.num_hidden_layers=1",
          "model.num_attention_heads=2",      "model.num_key_value_heads=2",
          "data.sequence_length=32",          "batch.global_sequences=4",
          "batch.micro_sequences=1",          "precision.mode=fp32"};
}

std::vector<OrderedJson> events_of(const std::string& name, const std::string& event) {
  std::vector<OrderedJson> found;
  for (const OrderedJson& json : read_json_lines(job().run(name) / "events.jsonl")) {
    if (json.at("event") == event) found.push_back(json);
  }
  return found;
}

OrderedJson report_of(const std::string& name) {
  return OrderedJson::parse(TinyJob::must({"report", job().run(name).string(), "--json"}).out);
}

std::string log_of(const std::string& name, int rank) {
  const fs::path path = job().run(name) / fmt::format("logs/rank-{:05}.log", rank);
  return fs::exists(path) ? read_file(path) : "";
}

int64_t num_steps(const std::string& name) {
  const fs::path path = job().run(name) / "metrics.jsonl";
  if (!fs::exists(path)) return 0;
  const std::string text = read_file(path);
  return std::count(text.begin(), text.end(), '\n');
}

// One fatal failure, with its words in the event, the log of `rank` and the report.
void expect_recorded(const std::string& name, int rank, const std::string& words) {
  const auto failures = events_of(name, "failure");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].at("fatal"), true);
  EXPECT_EQ(failures[0].at("rank"), rank);
  EXPECT_GE(failures[0].at("step"), 1);
  EXPECT_NE(failures[0].at("reason").get<std::string>().find(words), std::string::npos)
      << failures[0].at("reason");
  EXPECT_NE(log_of(name, rank).find(words), std::string::npos) << log_of(name, rank);
  EXPECT_NE(log_of(name, 0).find(words), std::string::npos) << log_of(name, 0);
  const OrderedJson report = report_of(name);
  ASSERT_EQ(report.at("failures").size(), 1u);
  EXPECT_EQ(report.at("end"), "failed");
  EXPECT_NE(report.at("failures")[0].at("reason").get<std::string>().find(words),
            std::string::npos);
}

const Overrides kDiverges = {"optimizer.clip_norm=0", "optimizer.learning_rate=1000",
                             "optimizer.min_learning_rate=0", "optimizer.warmup_steps=0",
                             "model.init_std=10"};

TEST(RunRecord, ALossThatIsNotFinite) {
  const Outcome outcome = job().train("nan", small(500) + kDiverges);
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err;
  expect_recorded("nan", 0, "expected finite numbers");
}

TEST(RunRecord, ALossThatIsNotFiniteOfSeveralWorkers) {
  const Outcome outcome =
      job().train("nan2", small(500) + kDiverges + Overrides{"launch.workers=2"});
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err;
  const auto failures = events_of("nan2", "failure");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].at("reason").get<std::string>().find("expected finite"), std::string::npos);
}

TEST(RunRecord, AKilledWorker) {
  SkeinProcess process(job().arguments(
      "train", "killed", small(100'000) + Overrides{"launch.workers=2", "launch.max_restarts=0"}));
  ASSERT_TRUE(wait_until([&] { return num_steps("killed") > 5; }));
  const pid_t worker = worker_of(process.pid(), 1);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  ASSERT_EQ(process.wait().exit_code, 1);
  expect_recorded("killed", 1, "was killed by signal 9");
}

TEST(RunRecord, AWorkerThatWasReplaced) {
  SkeinProcess process(
      job().arguments("train", "replaced", small(100'000) + Overrides{"launch.workers=2"}));
  ASSERT_TRUE(wait_until([&] { return num_steps("replaced") > 5; }));
  ::kill(worker_of(process.pid(), 1), SIGKILL);
  ASSERT_TRUE(wait_until([&] { return events_of("replaced", "start").size() == 2; }));
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_NE(outcome.err.find("rank 1 | "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("arenas {"), std::string::npos) << outcome.err;
  EXPECT_EQ(report_of("replaced").at("failures").size(), 1u);
  const auto failures = events_of("replaced", "failure");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_FALSE(failures[0].at("fatal").get<bool>());
  EXPECT_EQ(failures[0].at("rank"), 1);
  const auto generations = events_of("replaced", "generation");
  ASSERT_EQ(generations.size(), 1u);
  EXPECT_EQ(generations[0].at("generation"), 2);
  EXPECT_EQ(generations[0].at("ranks"), 2);
  EXPECT_NE(generations[0].at("reason").get<std::string>().find("SIGKILL"), std::string::npos);
}

TEST(RunRecord, AProcessThatWasKilled) {
  SkeinProcess process(job().arguments("train", "kill9", small(100'000)));
  ASSERT_TRUE(wait_until([&] { return num_steps("kill9") > 5; }));
  EXPECT_EQ(report_of("kill9").at("end"), "running");
  EXPECT_EQ(report_of("kill9").at("failures").size(), 0u);
  process.send(SIGKILL);
  process.wait();
  EXPECT_EQ(report_of("kill9").at("end"), "vanished");
  EXPECT_EQ(report_of("kill9").at("failures").size(), 1u);
}

TEST(RunRecord, ASecondProcessWritesNothingIntoTheFirstOnesRun) {
  SkeinProcess process(job().arguments("train", "busy", small(100'000)));
  ASSERT_TRUE(wait_until([&] { return num_steps("busy") > 2; }));
  EXPECT_EQ(job().train("busy", small(100'000)).exit_code, 1);
  EXPECT_EQ(job().train("busy", small(100'000) + Overrides{"launch.workers=2"}).exit_code, 1);
  EXPECT_TRUE(events_of("busy", "failure").empty());
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 75);
}

size_t count_of(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(RunRecord, AnInterruptIsAnsweredAndToldAsWhatItIs) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("interrupt{}", workers);
    SkeinProcess process(job().arguments(
        "train", name, small(100'000) + Overrides{fmt::format("launch.workers={}", workers)}));
    ASSERT_TRUE(wait_until([&] { return num_steps(name) > 2; }));
    process.send(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_EQ(count_of(outcome.err, "stopping after this step"), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find("stopped by SIGINT at step"), std::string::npos) << outcome.err;
    EXPECT_EQ(events_of(name, "stop").at(0).at("reason"), "SIGINT");
    EXPECT_EQ(report_of(name).at("last_stop_reason"), "SIGINT");
  }
}

// As `timeout -s INT` sends them: to the process, and to its group.
TEST(RunRecord, TwoInterruptsAtOnceSave) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("interrupts{}", workers);
    SkeinProcess process(job().arguments(
        "train", name, small(100'000) + Overrides{fmt::format("launch.workers={}", workers)}));
    ASSERT_TRUE(wait_until([&] { return num_steps(name) > 2; }));
    process.send(SIGINT);
    for (int rank = 0; workers > 1 && rank < workers; ++rank) {
      ::kill(worker_of(process.pid(), rank), SIGINT);
    }
    process.send(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    const OrderedJson stop = events_of(name, "stop").at(0);
    EXPECT_EQ(stop.at("reason"), "SIGINT");
    EXPECT_TRUE(fs::exists(job().checkpoint(name, stop.at("step")) / "manifest.json"));
  }
}

// A step so long that it is under way when the second one comes.
TEST(RunRecord, AnInterruptThatDoesNotWaitIsToldAsWhatItIs) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("impatient{}", workers);
    SkeinProcess process(
        job().arguments("train", name,
                        small(100) + Overrides{fmt::format("launch.workers={}", workers),
                                               "batch.global_sequences=80000", "data.lanes=8"}));
    // Before its first step a run would save and end at the first interrupt.
    ASSERT_TRUE(wait_until(
        [&] { return log_of(name, 0).find("beginning from random") != std::string::npos; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    process.send(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    process.send(SIGINT);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, workers == 1 ? -SIGINT : 1);
    EXPECT_NE(outcome.err.find("nothing was saved so far"), std::string::npos) << outcome.err;
    const auto stops = events_of(name, "stop");
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_EQ(stops[0].at("reason"), "SIGINT twice, without saving");
    EXPECT_EQ(stops[0].at("saved"), false);
    EXPECT_EQ(stops[0].at("saved_step"), 0);
    EXPECT_TRUE(events_of(name, "failure").empty());
    const OrderedJson report = report_of(name);
    EXPECT_EQ(report.at("end"), "stopped");
    EXPECT_EQ(report.at("last_stop_reason"), "SIGINT twice, without saving");
  }
}

TEST(RunRecord, TheFirstLineSaysWhereTheRunIsAndWhetherItIsNew) {
  job().trained("placed", small(3));
  const std::string folder = job().run("placed").lexically_normal().string();
  const std::string first = log_of("placed", 0).substr(0, log_of("placed", 0).find('\n'));
  EXPECT_NE(first.find("a new run, in " + folder), std::string::npos) << first;
  const Outcome again = job().train("placed", small(5) + Overrides{"launch.workers=2"});
  EXPECT_NE(
      again.err.find("continuing the run in " + folder + ", whose newest checkpoint is of step 3"),
      std::string::npos)
      << again.err;
}

TEST(RunRecord, AFinishedRunThatIsStartedAgainIsLeftAsItWas) {
  job().trained("finished", small(3));
  const std::string events = read_file(job().run("finished") / "events.jsonl");
  for (const int workers : {1, 2}) {
    const Outcome again =
        job().train("finished", small(3) + Overrides{"optimizer.warmup_steps=2000",
                                                     fmt::format("launch.workers={}", workers)});
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_NE(again.err.find("nothing to do"), std::string::npos) << again.err;
    EXPECT_EQ(again.err.find("warmup_steps"), std::string::npos) << again.err;
    EXPECT_EQ(read_file(job().run("finished") / "events.jsonl"), events);
  }
}

// Each of them saves, for one worker and for several.
TEST(RunRecord, AHangUpSavesAndExitsWith75) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("hangup{}", workers);
    SkeinProcess process(job().arguments(
        "train", name, small(100'000) + Overrides{fmt::format("launch.workers={}", workers)}));
    ASSERT_TRUE(wait_until([&] { return num_steps(name) > 2; }));
    process.send(SIGHUP);
    EXPECT_EQ(process.wait().exit_code, 75);
    const int64_t step = events_of(name, "stop").at(0).at("step");
    EXPECT_TRUE(fs::exists(job().checkpoint(name, step) / "manifest.json"));
    EXPECT_EQ(report_of(name).at("end"), "stopped");
  }
}

TEST(RunRecord, ATimeThatHasPassedSavesAndExitsWith75) {
  const Overrides run = small(8) + Overrides{"parallel.reduction_width=2"};
  job().trained("undisturbed", run);
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("out_of_time{}", workers);
    const Overrides two = {fmt::format("launch.workers={}", workers)};
    const Outcome outcome = job().train(name, run + two + Overrides{"run.stop_after_hours=1e-9"});
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_NE(outcome.err.find("run.stop_after_hours"), std::string::npos) << outcome.err;
    const OrderedJson stop = events_of(name, "stop").at(0);
    EXPECT_EQ(stop.at("reason"), "run.stop_after_hours");
    EXPECT_LT(stop.at("step").get<int64_t>(), 8);
    job().trained(name, run + two);
    EXPECT_EQ(different_bits(read_curve(job().run("undisturbed")), read_curve(job().run(name))),
              "");
  }
}

// A terminal whose other end is this test; closing it sends SIGHUP, and writing to it fails then.
TEST(RunRecord, ATerminalThatIsClosedSavesAndExitsWith75) {
  for (const int workers : {1, 2}) {
    const std::string name = fmt::format("terminal{}", workers);
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(master, 0);
    ASSERT_EQ(grantpt(master), 0);
    ASSERT_EQ(unlockpt(master), 0);
    const std::string slave = ptsname(master);
    const Arguments arguments = job().arguments(
        "train", name, small(100'000) + Overrides{fmt::format("launch.workers={}", workers)});
    std::vector<const char*> argv = {kProgram};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      const int terminal = open(slave.c_str(), O_RDWR);
      ioctl(terminal, TIOCSCTTY, 0);
      for (const int fd : {0, 1, 2}) dup2(terminal, fd);
      close(terminal);
      close(master);
      execv(argv[0], const_cast<char**>(argv.data()));
      _exit(127);
    }
    std::thread reader([&] {  // or it would block on a full terminal
      char text[4096];
      while (num_steps(name) <= 5 && read(master, text, sizeof(text)) > 0) {
      }
    });
    const bool trains = wait_until([&] { return num_steps(name) > 5; });
    reader.join();
    close(master);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(trains);
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 75);
    ASSERT_EQ(events_of(name, "stop").size(), 1u);
    const int64_t step = events_of(name, "stop")[0].at("step");
    EXPECT_TRUE(fs::exists(job().checkpoint(name, step) / "manifest.json"));
  }
}

TEST(RunRecord, ASignalToOneWorkerStopsAllAfterTheSameStep) {
  for (const char* layout :
       {"parallel.data=2", "parallel.tensor=2", "parallel.pipeline=2", "parallel.context=2"}) {
    SCOPED_TRACE(layout);
    const std::string name = std::string("stop_") + (layout + std::string("parallel.").size());
    SkeinProcess process(job().arguments(
        "train", name,
        small(100'000) + Overrides{"launch.workers=2", "model.num_hidden_layers=2", layout}));
    ASSERT_TRUE(wait_until([&] { return num_steps(name) > 3; }));
    const pid_t worker = worker_of(process.pid(), 1);
    ASSERT_GT(worker, 0);
    ::kill(worker, SIGTERM);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    ASSERT_EQ(events_of(name, "stop").size(), 1u);
    const int64_t step = events_of(name, "stop")[0].at("step");
    EXPECT_EQ(step, read_curve(job().run(name)).rbegin()->first);
    EXPECT_TRUE(fs::exists(job().checkpoint(name, step) / "manifest.json"));
  }
}

double last_epoch(const std::string& name) {
  return read_json_lines(job().run(name) / "metrics.jsonl").back().at("epoch");
}

TEST(RunRecord, EpochsAreCountedAlikeInAnyLayoutAndAfterAResume) {
  job().trained("epoch1", small(12));
  job().trained("epoch2", small(12) + Overrides{"launch.workers=2"});
  job().trained("epoch_cut", small(5));
  job().trained("epoch_cut", small(12) + Overrides{"launch.workers=2", "parallel.tensor=2"});
  const double epoch = last_epoch("epoch1");
  EXPECT_GT(epoch, 0);
  EXPECT_EQ(last_epoch("epoch2"), epoch);
  EXPECT_EQ(last_epoch("epoch_cut"), epoch);
}

TEST(RunRecord, RunEpochsIsThatOften) {
  write_documents(job().folder / "short.jsonl", 20'000);
  const std::string corpus = (job().folder / "short.arrow").string();
  TinyJob::must({"data", "ingest", "--out", corpus, (job().folder / "short.jsonl").string()});
  Overrides overrides = small(1) + Overrides{"data.train=" + corpus};
  overrides[0] = "run.epochs=1.5";
  const Outcome outcome = job().train("epochs", overrides);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("run.epochs = 1.5 is run.steps = "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("has been read once; from here on it repeats"), std::string::npos);
  EXPECT_EQ(events_of("epochs", "epoch").size(), 1u);
  EXPECT_NEAR(last_epoch("epochs"), 1.5, 0.08);
  // Its own configuration goes on to the same end, and says it in steps.
  const Outcome again = run_skein({"train", (job().run("epochs") / "config.toml").string()});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("nothing to do"), std::string::npos) << again.err;
}

// The detector's state is the checkpoint's: whatever metrics.jsonl says.
TEST(RunRecord, AResumeGoesOnWithTheSameMonitor) {
  job().trained("monitor", small(40));
  job().trained("monitor_cut", small(25));
  std::ofstream(job().run("monitor_cut") / "metrics.jsonl").close();
  job().trained("monitor_cut", small(40));
  const Json whole = CheckpointReader(job().checkpoint("monitor", 40)).state().monitor;
  const Json cut = CheckpointReader(job().checkpoint("monitor_cut", 40)).state().monitor;
  EXPECT_TRUE(whole.is_object());
  EXPECT_EQ(whole.at("window").size(), 20u);
  EXPECT_EQ(whole, cut);
}

int64_t resident_bytes(pid_t pid, const std::string& what) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::atoll(line.c_str() + what.size() + 1) * 1024;
  }
  return -1;
}

TEST(RunRecord, MemoryDoesNotGrowWithTheSteps) {
  constexpr int64_t kFirst = 1500, kLast = 6500, kMostBytes = 150'000;  // 30 bytes a step
  SkeinProcess process(job().arguments(
      "train", "memory", small(1'000'000) + Overrides{"log.tensorboard=true", "device.threads=1"}));
  ASSERT_TRUE(wait_until([&] { return num_steps("memory") >= kFirst; }, 110));
  const int64_t before = resident_bytes(process.pid(), "RssAnon");
  const bool done = wait_until([&] { return num_steps("memory") >= kLast; }, 110);
  const int64_t after = resident_bytes(process.pid(), "RssAnon");
  process.send(SIGTERM);
  EXPECT_EQ(process.wait(300).exit_code, 75);
  ASSERT_TRUE(done);
  ASSERT_GT(before, 0);
  EXPECT_LT(after - before, kMostBytes);
}

}  // namespace
}  // namespace skein
