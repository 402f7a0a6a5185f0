// What a person on call has of a run: pages, the last lines of the rank that failed, every rank's
// log in one place, and where the time went.
#include "tests/parallel_job.h"

namespace skein {
namespace {

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

Overrides small() {
  return {"run.steps=100000",          "model.hidden_size=32",        "model.intermediate_size=64",
          "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.num_key_value_heads=2",
          "data.sequence_length=32",   "batch.global_sequences=4",    "batch.micro_sequences=1",
          "precision.mode=fp32",       "checkpoint.every_steps=5"};
}

int64_t count_of(const std::string& name, const std::string& file, const std::string& words) {
  const std::string text = read_file_if_any(job().run(name) / file);
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(words, at)) != text.npos; at += words.size()) ++count;
  return count;
}

const char* const kPage =
    "launch.on_event=printf '%s;%s;%s\\n' \"$SKEIN_EVENT\" \"$SKEIN_EVENT_RANK\" "
    "\"$SKEIN_EVENT_CAUSE\" >> \"$SKEIN_RUN_DIR/pages\"";

TEST(OnCall, AFailureIsPagedShownAndAccountedFor) {
  SkeinProcess process(job().arguments(
      "train", "paged", small() + Overrides{"launch.workers=2", kPage, "log.every_steps=1000"}));
  ASSERT_TRUE(wait_until([] { return count_of("paged", "metrics.jsonl", "\n") > 12; }));
  ::kill(worker_of(process.pid(), 1), SIGKILL);
  ASSERT_TRUE(wait_until([] { return count_of("paged", "events.jsonl", "\"start\"") == 2; }));
  const int64_t steps = count_of("paged", "metrics.jsonl", "\n");
  ASSERT_TRUE(wait_until([&] { return count_of("paged", "metrics.jsonl", "\n") > steps + 5; }));
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  ASSERT_EQ(outcome.exit_code, 75) << outcome.err;

  const std::string pages = read_file_if_any(job().run("paged") / "pages");
  for (const char* page : {"failure;1;\n", "generation;;killed\n", "stop;;\n"}) {
    EXPECT_EQ(count_of("paged", "pages", page), 1) << page << "in\n" << pages;
  }
  EXPECT_NE(outcome.err.find("rank 1 | "), std::string::npos) << outcome.err;
  EXPECT_EQ(count_of("paged", "logs/rank-00001.log", "rank 1 of 2 on "), 2);
  EXPECT_EQ(count_of("paged", "logs/rank-00000.log", "rank 0 of 2 on "), 2);
  bool supervisor_told = false;
  for (const auto& file : fs::directory_iterator(job().run("paged") / "logs")) {
    if (!file.path().filename().string().starts_with("supervisor-")) continue;
    supervisor_told = read_file(file.path()).find("generation 2 continues") != std::string::npos;
  }
  EXPECT_TRUE(supervisor_told);

  const OrderedJson report =
      OrderedJson::parse(TinyJob::must({"report", job().run("paged").string(), "--json"}).out);
  const OrderedJson& parts = report.at("time").at("parts");
  int64_t micros = 0;
  for (const auto& [part, seconds] : parts.items()) {
    micros += std::llround(1e6 * seconds.get<double>());
  }
  EXPECT_EQ(micros, std::llround(1e6 * report.at("time").at("wall_seconds").get<double>()));
  for (const char* part : {"productive", "starting", "detecting", "recovering"}) {
    EXPECT_GT(parts.at(part).get<double>(), 0) << part;
  }
  EXPECT_NEAR(
      report.at("goodput").get<double>() * report.at("time").at("wall_seconds").get<double>(),
      parts.at("productive").get<double>(), 1e-6);
}

// A command that fails, or never ends, changes nothing but one line of the log.
TEST(OnCall, ACommandThatHangsDoesNotHoldUpTheRun) {
  Overrides finite = small();
  finite[0] = "run.steps=10";
  const Outcome outcome =
      job().run_for("hangs", finite + Overrides{"launch.workers=2", "launch.on_event=sleep 1000"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("`sleep 1000` did not end in time and was killed"), std::string::npos)
      << outcome.err;
}

// The command of a single worker, which has no supervisor, is told of its fatal failure.
TEST(OnCall, ASingleWorkerIsPagedAsWell) {
  const Outcome outcome = job().run_for(
      "alone", small() + Overrides{kPage, "optimizer.clip_norm=0", "optimizer.learning_rate=1000",
                                   "optimizer.min_learning_rate=0", "optimizer.warmup_steps=0",
                                   "model.init_std=10"});
  ASSERT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(count_of("alone", "pages", "failure;0;\n"), 1)
      << read_file_if_any(job().run("alone") / "pages");
}

}  // namespace
}  // namespace skein
