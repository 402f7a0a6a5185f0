// What a step of a run read is told as it was, though weights, tokenizer and rows changed since and
// the checkpoints of before are gone.
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 14;

// Begins with two corpora, and changes their weights after step 4, the tokenizer after 8, and the
// length of a row after 11. Saved at every step.
class ChangingJob : public TinyJob {
 public:
  ChangingJob() {
    write_documents(folder / "more.jsonl", 200'000);
    must({"data", "ingest", "--out", more().string(), (folder / "more.jsonl").string()});
    must({"data", "tokenizer", "--vocab-size", "310", "--out", other_tokenizer().string(),
          more().string()});  // more tokens, so that lanes can go on
    train(4, weights("0.2"), "");
    train(8, weights("0.9"), "data.source");
    train(11, weights("0.9") + new_tokenizer(), "data.tokenizer");
    train(kSteps, last(), "data.sequence_length");
  }

  fs::path more() const { return folder / "more.arrow"; }
  fs::path other_tokenizer() const { return folder / "other_tokenizer"; }
  Overrides weights(const std::string& of_more) const {
    return {"data.train=", "data.source=[{path = \"" + corpus().string() +
                               "\", weight = 0.5}, {path = \"" + more().string() +
                               "\", weight = " + of_more + "}]"};
  }
  Overrides new_tokenizer() const { return {"data.tokenizer=" + other_tokenizer().string()}; }
  Overrides last() const {
    return weights("0.9") + new_tokenizer() + Overrides{"data.sequence_length=48"};
  }
  void train(int64_t steps, const Overrides& overrides, const std::string& accepted) const {
    trained("run", overrides + Overrides{fmt::format("run.steps={}", steps), "model.vocab_size=320",
                                         "checkpoint.every_steps=1", "checkpoint.keep=0",
                                         "run.accept_changes=" + accepted});
  }
  // A copy without the checkpoints before `first`.
  std::string copy_from(const std::string& name, int64_t first) const {
    fs::copy(run("run"), run(name), fs::copy_options::recursive);
    for (int64_t step = 1; step < first; ++step) fs::remove_all(checkpoint(name, step));
    return run(name).string();
  }
};

const ChangingJob& job() {
  static const ChangingJob job;
  return job;
}

std::string sample(const std::string& what, int64_t step, const Arguments& more = {}) {
  Arguments arguments = {"data", "sample", what, "--json", "--step", fmt::format("{}", step)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return TinyJob::must(arguments).out;
}

Json why(const std::string& run, int64_t step) {
  return Json::parse(
      TinyJob::must({"why", run, "--step", fmt::format("{}", step), "--json", "--top", "1000"})
          .out);
}

// Where the documents of a step are, however they rank.
std::set<std::string> places(const Json& answer) {
  std::set<std::string> all;
  for (const Json& document : answer.at("documents")) {
    all.insert(fmt::format("{} {} {} {}-{}", document.at("corpus").get<std::string>(),
                           document.at("document").get<int64_t>(), document.at("row").get<int>(),
                           document.at("begin").get<int>(), document.at("end").get<int>()));
  }
  return all;
}

TEST(RunPast, StepsAreToldAsTheyWereTrained) {
  std::map<int64_t, double> losses;
  for (const OrderedJson& json : read_json_lines(job().run("run") / "metrics.jsonl")) {
    losses[json.at("step")] = json.at("loss");
  }
  const std::string run = job().run("run").string();
  const std::string two = job().copy_from("two", kSteps - 1), one = job().copy_from("one", kSteps);
  for (const int64_t step : {1, 4, 5, 8, 9, 11, 12, 14}) {
    SCOPED_TRACE(step);
    // By the very weights that the step began with, its loss says that its rows are right.
    const Json answer = why(run, step);
    EXPECT_EQ(answer.at("exact"), true);
    EXPECT_NEAR(answer.at("loss"), losses.at(step), 1e-6);
    EXPECT_EQ(places(why(two, step)), places(answer));
    const Json rows = Json::parse(sample(run, step)).at("rows");
    std::set<std::string> sampled;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const Json& document : rows[i].at("documents")) {
        const fs::path corpus = document.at("source") == "more" ? job().more() : job().corpus();
        sampled.insert(fmt::format("{} {} {} {}-{}", corpus.lexically_normal().string(),
                                   document.at("document").get<int64_t>(), i,
                                   document.at("begin").get<int>(), document.at("end").get<int>()));
      }
    }
    EXPECT_EQ(sampled, places(answer));
    EXPECT_EQ(sample(two, step), sample(run, step));
    EXPECT_EQ(sample(one, step), sample(run, step));
    const std::string at = fmt::format("{}", step);
    EXPECT_EQ(TinyJob::must({"data", "show", one, "--step", at, "--lane", "1"}).out,
              TinyJob::must({"data", "show", run, "--step", at, "--lane", "1"}).out);
  }
  std::string all;
  for (int64_t step = 3; step <= 13; ++step) all += sample(run, step);
  EXPECT_EQ(sample(one, 3, {"--count", "11"}), all);
}

TEST(RunPast, ChangesAreSaid) {
  const std::string run = job().run("run").string();
  const Outcome before = TinyJob::must({"why", run, "--step", "4"});
  EXPECT_NE(before.err.find("step 4 was trained with data.source corpus 0.5, more 0.2, which "
                            "changed after step 4 to corpus 0.5, more 0.9; data.tokenizer"),
            std::string::npos)
      << before.err;
  const Outcome after = TinyJob::must({"why", run, "--step", "14"});
  EXPECT_EQ(after.err.find("was trained with"), std::string::npos) << after.err;
}

// The configuration of before, at hand, is not what later steps were trained with.
TEST(RunPast, AConfigurationThatIsNotTheRunsTellsOfIt) {
  Arguments before;
  for (const std::string& text : job().weights("0.2")) {
    before.insert(before.end(), {"--set", text});
  }
  const Arguments with = {"--set", "run.dir=" + job().run("run").string(), "--set",
                          "model.vocab_size=320"};
  before.insert(before.end(), with.begin(), with.end());
  const std::string run = job().run("run").string();
  for (const int64_t step : {3, 6, 10, 13}) {
    EXPECT_EQ(sample(job().config().string(), step, before), sample(run, step)) << step;
  }
  // A step that is yet to come is what the configuration would make of it.
  Arguments next = before;
  next.insert(next.end(), {"--set", job().new_tokenizer()[0]});
  EXPECT_NE(sample(job().config().string(), kSteps + 1, next), sample(run, kSteps + 1));
  // Of another run it is refused, and of none it begins.
  Arguments other = {"data", "sample", job().config().string(), "--step", "1"};
  other.insert(other.end(), before.begin(), before.end());
  other.insert(other.end(), {"--set", "run.seed=2"});
  expect_refused(run_skein(other), 2, {"run.seed is 1 there and 2", "set run.dir"});
  other.insert(other.end(), {"--set", "run.dir=" + job().run("none").string()});
  EXPECT_EQ(run_skein(other).exit_code, 0);
}

// A run that went back is told as it went on, also before it saved anything since.
TEST(RunPast, StepsThatWereGoneBackFromAreNotTold) {
  const Overrides often = {"checkpoint.every_steps=1", "checkpoint.keep=0"};
  job().trained("back", job().weights("0.2") + often + Overrides{"run.steps=16"});
  const std::string back = job().run("back").string();
  const std::string second = sample(back, 2), last = sample(back, 16);
  job().trained("back", job().weights("40") +
                            Overrides{"run.steps=16", "run.accept_changes=data.source",
                                      "run.resume=" + job().checkpoint("back", 2).string()});
  const double loss = read_json_lines(job().run("back") / "metrics.jsonl").back().at("loss");
  EXPECT_NEAR(
      Json::parse(TinyJob::must({"why", back, "--step", "16", "--exact", "--json"}).out).at("loss"),
      loss, 1e-6);
  EXPECT_NE(sample(back, 16), last);
  EXPECT_EQ(sample(back, 2), second);
  fs::remove_all(job().checkpoint("back", 16));
  const std::string again = sample(back, 16);
  fs::remove_all(job().run("back") / "checkpoints");
  EXPECT_EQ(sample(back, 16), again);
  EXPECT_EQ(sample(back, 2), second);
}

// A source that is gone from the mixture is looked for where a checkpoint says.
TEST(RunPast, SourcesThatWereDroppedAreFoundWhereACheckpointNamesThem) {
  job().trained("drops", job().weights("0.9") + Overrides{"run.steps=2"});
  const std::string drops = job().run("drops").string();
  const std::string before = sample(drops, 1);
  job().trained("drops",
                {"data.train=", "data.source=[{path = \"" + job().corpus().string() + "\"}]",
                 "run.steps=4", "run.accept_changes=data.source"});
  EXPECT_EQ(sample(drops, 1), before);
  EXPECT_NE(sample(drops, 3), before);
  fs::remove_all(job().checkpoint("drops", 2));
  expect_refused(run_skein({"data", "sample", drops, "--step", "1"}), 2,
                 {"data.source was corpus 0.5 (", "until step 2",
                  "no configuration that is left says where the source more lies"});
}

TEST(RunPast, WhatCannotBeToldIsRefused) {
  const std::string one = job().copy_from("refuses", kSteps);
  const fs::path away = job().folder / "away";
  fs::rename(job().tokenizer(), away);
  for (const char* command : {"why", "data"}) {
    Arguments arguments = {command};
    if (arguments[0] == "data") arguments.emplace_back("sample");
    arguments.insert(arguments.end(), {one, "--step", "7"});
    const Outcome outcome = run_skein(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    for (const std::string& word :
         {"data.tokenizer was " + job().tokenizer().lexically_normal().string(),
          std::string("until step 8"), std::string("cannot be had any more"),
          std::string("a step from 9 on")}) {
      EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
    }
  }
  fs::rename(away, job().tokenizer());
  expect_refused(run_skein({"why", one, "--step", "7", "--exact"}), 2,
                 {"--exact would train steps 1 to 6 again", "after step 4 data.source"});
}

}  // namespace
}  // namespace skein
