// A run that diverges goes back and on without the batches that did it, as one that never saw them.
#include <random>

#include "skein/checkpoint/find/checkpoint_folder.h"
#include "tests/parallel_job.h"
#include "tests/poisoned_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 75;

// Noise in the middle of every lane, for seven steps.
const PoisonedJob& job() {
  static const PoisonedJob job({{{0.5, PoisonedJob::noise(380, 1)}},
                                {{0.5, PoisonedJob::noise(380, 2)}},
                                {{0.5, PoisonedJob::noise(380, 3)}},
                                {{0.5, PoisonedJob::noise(380, 4)}}});
  return job;
}

Overrides rolling() { return job().setting(kSteps) + Overrides{"run.on_divergence=roll_back"}; }

std::vector<OrderedJson> events_of(const std::string& name, const std::string& event) {
  std::vector<OrderedJson> found;
  for (const OrderedJson& json : read_json_lines(job().run(name) / "events.jsonl")) {
    if (json.at("event") == event) found.push_back(json);
  }
  return found;
}

Json manifest_of(const std::string& name) {
  return Json::parse(read_file(job().checkpoint(name, kSteps) / "manifest.json"));
}

// The run that is left alone and rolls back; its one roll_back event.
const OrderedJson& rolled() {
  static const OrderedJson event = [] {
    job().trained("rolled", rolling());
    const auto events = events_of("rolled", "roll_back");
    EXPECT_EQ(events.size(), 1u);
    return events.at(0);
  }();
  return event;
}

std::string skipped_text() {
  return fmt::format("{}-{}", rolled().at("batches")[0].get<int64_t>(),
                     rolled().at("batches")[1].get<int64_t>());
}

// A run of the same steps, that ended in the very same state.
void expect_same_run(const std::string& name) {
  EXPECT_EQ(read_curve(job().run(name)), read_curve(job().run("rolled")));
  EXPECT_EQ(different_state(job().checkpoint("rolled", kSteps), job().checkpoint(name, kSteps)),
            "");
  const Json found = manifest_of(name), expected = manifest_of("rolled");
  for (const char* key : {"lanes", "monitor", "tokens_seen", "skipped_batches"}) {
    EXPECT_EQ(found.at(key), expected.at(key)) << key;
  }
}

TEST(RollBack, GoesOnAsARunThatWasToldToSkipTheSameBatches) {
  const int64_t step = rolled().at("step"), to_step = rolled().at("to_step");
  const Json batches = Json::array({step - 4, step});
  EXPECT_EQ(Json(rolled().at("batches")), batches);
  EXPECT_EQ(Json(rolled().at("skipped")), Json::array({batches}));
  EXPECT_EQ(rolled().at("count"), 1);
  EXPECT_LT(to_step, step - 4);
  EXPECT_EQ(to_step % 7, 0);
  EXPECT_EQ(rolled().at("from"), job().checkpoint("rolled", to_step).string());
  EXPECT_EQ(manifest_of("rolled").at("skipped_batches"), Json::array({batches}));
  EXPECT_EQ(manifest_of("rolled").at("roll_backs"), 1);
  job().trained("told", job().setting(kSteps) + Overrides{"data.skip_batches=" + skipped_text()});
  EXPECT_TRUE(events_of("told", "roll_back").empty());
  expect_same_run("told");
  const Json report =
      Json::parse(TinyJob::must({"report", job().run("rolled").string(), "--json"}).out);
  EXPECT_EQ(report.at("roll_backs"), 1);
  EXPECT_EQ(report.at("restarts"), 0);
}

// Killed and stopped after random numbers of steps, with one worker and with two in turn.
TEST(RollBack, IsTheSameWhereverTheRunIsInterrupted) {
  rolled();
  const auto num_lines = [] {
    return read_json_lines(job().run("disturbed") / "metrics.jsonl").size();
  };
  std::mt19937_64 random(11);
  int exit_code = -1;
  for (int start = 0; start < 40 && exit_code != 0; ++start) {
    const Overrides workers = {fmt::format("launch.workers={}", 1 + start % 2)};
    SkeinProcess process(job().arguments("train", "disturbed", rolling() + workers));
    const size_t until = num_lines() + 8 + random() % 25;
    while (num_lines() < until && ::kill(process.pid(), 0) == 0) {
      if (fs::exists(job().checkpoint("disturbed", kSteps))) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const bool is_done = fs::exists(job().checkpoint("disturbed", kSteps));
    if (!is_done) process.send(start % 3 == 0 ? SIGTERM : SIGKILL);
    exit_code = process.wait().exit_code;
  }
  EXPECT_EQ(exit_code, 0);
  EXPECT_GT(events_of("disturbed", "start").size(), 2u);
  expect_same_run("disturbed");
  EXPECT_EQ(manifest_of("disturbed").at("roll_backs"), 1);
}

// No batch is to blame: the numbers break wherever the run goes on.
TEST(RollBack, IsBounded) {
  const Outcome outcome =
      job().train("bounded", {"run.on_divergence=roll_back", "run.max_roll_backs=2", "run.steps=50",
                              "optimizer.clip_norm=0", "optimizer.learning_rate=1000",
                              "optimizer.min_learning_rate=0", "optimizer.warmup_steps=0",
                              "model.init_std=10"});
  expect_refused(outcome, 1,
                 {"after 2 roll-backs", "run.max_roll_backs",
                  "skein why " + job().run("bounded").string() + " --batch"});
  const auto events = events_of("bounded", "roll_back");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].at("count"), 2);
  EXPECT_EQ(events[0].at("to_step"), 0);
  EXPECT_EQ(events[0].at("from"), "");
  // From the initial weights again: the steps before it are the same.
  EXPECT_EQ(events[0].at("step"), events[1].at("step"));
  EXPECT_TRUE(list_checkpoints(job().run("bounded") / "checkpoints").empty());
}

TEST(RollBack, WhichBatchAStepTrainedOnIsKnownAfterwards) {
  const int64_t first = rolled().at("batches")[0], last = rolled().at("batches")[1];
  const auto sample = [](const Arguments& which, int64_t step) {
    Arguments arguments = {"data", "sample"};
    arguments.insert(arguments.end(), which.begin(), which.end());
    arguments.insert(arguments.end(), {"--step", std::to_string(step), "--json"});
    return Json::parse(TinyJob::must(arguments).out).at("rows");
  };
  Arguments plain = job().arguments("", "none", job().setting(kSteps));
  plain.erase(plain.begin());
  const Arguments run = {job().run("rolled").string()};
  EXPECT_EQ(sample(run, first - 1), sample(plain, first - 1));
  EXPECT_EQ(sample(run, first), sample(plain, last + 1));

  const auto why = [&](const char* option, int64_t number) {
    return Json::parse(TinyJob::must({"why", job().run("rolled").string(), option,
                                      std::to_string(number), "--json"})
                           .out);
  };
  const Json skipped = why("--batch", first);
  EXPECT_EQ(skipped.at("skipped"), true);
  EXPECT_EQ(skipped.at("step"), first);
  EXPECT_EQ(skipped.at("documents").size(), 4u);
  for (const Json& document : skipped.at("documents")) {
    EXPECT_NE(std::find(job().planted.begin(), job().planted.end(), document.at("document")),
              job().planted.end())
        << document;
  }
  const Json trained = why("--step", first);
  EXPECT_EQ(trained.at("batch"), last + 1);
  EXPECT_EQ(trained.at("skipped"), false);
}

// One document, in one lane of four, that every batch left out is blamed on.
TEST(RollBack, OneDocumentIsEnoughAndIsNamed) {
  const PoisonedJob one({{}, {{0.5, PoisonedJob::noise(380, 2)}}, {}, {}});
  ASSERT_EQ(one.planted.size(), 1u);
  one.trained("one", one.setting(kSteps) + Overrides{"run.on_divergence=roll_back"});
  std::vector<OrderedJson> events;
  for (const OrderedJson& json : read_json_lines(one.run("one") / "events.jsonl")) {
    if (json.at("event") == "roll_back") events.push_back(json);
  }
  ASSERT_EQ(events.size(), 1u);
  const int64_t first = events[0].at("batches")[0], last = events[0].at("batches")[1];
  for (int64_t batch = first; batch <= last; ++batch) {
    const std::string text = std::to_string(batch);
    const Json why =
        Json::parse(TinyJob::must({"why", one.run("one").string(), "--batch", text, "--json"}).out);
    EXPECT_EQ(why.at("documents").at(0).at("document"), one.planted[0]) << why;
  }
}

TEST(RollBack, RefusesWhatCannotBe) {
  rolled();
  expect_refused(
      job().train("rolled", job().setting(kSteps + 1) + Overrides{"data.skip_batches=9"}), 2,
      {"data.skip_batches names batch 9", "was trained on it", "run.resume"});
  expect_refused(job().train("refused", {"data.skip_batches=4-"}), 2,
                 {"[data] skip_batches", "\"4-\"", "40-44"});
  expect_refused(job().train("refused", {"run.on_divergence=roll_back", "checkpoint.keep=2",
                                         "checkpoint.every_steps=4"}),
                 2, {"on_divergence", "keep = 2", "keep from 3"});
  EXPECT_FALSE(fs::exists(job().run("refused")));
}

}  // namespace
}  // namespace skein
