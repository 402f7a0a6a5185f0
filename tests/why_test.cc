// skein why: the losses and gradients of documents add up to the step's, and poison comes first.
#include "tests/poisoned_job.h"

namespace skein {
namespace {

Json why(const fs::path& run, int64_t step, const Arguments& more = {}) {
  Arguments arguments = {"why",    run.string(), "--step", std::to_string(step),
                         "--json", "--top",      "10000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Json::parse(TinyJob::must(arguments).out);
}

std::map<int64_t, Json> metrics_of(const fs::path& run) {
  std::map<int64_t, Json> steps;
  for (const OrderedJson& json : read_json_lines(run / "metrics.jsonl")) {
    steps[json.at("step")] = json;
  }
  return steps;
}

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// A run of 12 steps by two data ranks, saved at 4 and 8.
fs::path trained() {
  static const bool once = [] {
    job().trained("run", {"run.steps=12", "checkpoint.every_steps=4", "launch.workers=2"});
    fs::remove_all(job().checkpoint("run", 12));
    return true;
  }();
  EXPECT_TRUE(once);
  return job().run("run");
}

TEST(Why, DocumentsAddUpToTheStep) {
  const auto metrics = metrics_of(trained());
  const Json answer = why(trained(), 9);
  EXPECT_EQ(answer.at("weights_step"), 8);
  EXPECT_EQ(answer.at("exact"), true);
  EXPECT_EQ(answer.at("batch"), 9);
  double loss = 0, share = 0;
  int64_t labels = 0, tokens = 0;
  for (const Json& document : answer.at("documents")) {
    const int64_t count = document.at("labels");
    loss += document.at("loss").get<double>() * static_cast<double>(count);
    share += document.at("loss_share").get<double>();
    labels += count;
    tokens += document.at("tokens").get<int64_t>();
  }
  EXPECT_NEAR(loss / static_cast<double>(labels), metrics.at(9).at("loss"), 1e-6);
  EXPECT_NEAR(answer.at("loss"), metrics.at(9).at("loss"), 1e-6);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(labels,
            metrics.at(9).at("tokens").get<int64_t>() - metrics.at(8).at("tokens").get<int64_t>());
  EXPECT_LE(tokens, 4 * 64);
}

// Without --exact the weights are older, and the answer says so.
TEST(Why, ExactTrainsTheStepsInBetweenAgain) {
  const auto metrics = metrics_of(trained());
  const Json near = why(trained(), 12), exact = why(trained(), 12, {"--exact"});
  EXPECT_EQ(near.at("weights_step"), 8);
  EXPECT_EQ(near.at("exact"), false);
  EXPECT_GT(std::abs(near.at("loss").get<double>() - metrics.at(12).at("loss").get<double>()),
            1e-5);
  EXPECT_EQ(exact.at("weights_step"), 11);
  EXPECT_EQ(exact.at("exact"), true);
  EXPECT_NEAR(exact.at("loss"), metrics.at(12).at("loss"), 1e-6);
  // Before the first checkpoint there are the initial weights.
  const Json first = why(trained(), 1), third = why(trained(), 3, {"--exact"});
  EXPECT_EQ(first.at("weights_from"), "");
  EXPECT_NEAR(first.at("loss"), metrics.at(1).at("loss"), 1e-6);
  EXPECT_NEAR(third.at("loss"), metrics.at(3).at("loss"), 1e-6);
  const Outcome text = run_skein({"why", trained().string(), "--step", "12", "--top", "1"});
  EXPECT_NE(text.out.find("by the weights of step 8"), std::string::npos) << text.out;
  const Outcome again = run_skein({"why", trained().string(), "--step", "3", "--exact"});
  EXPECT_NE(again.out.find("by the weights of step 2, trained again from the initial ones"),
            std::string::npos)
      << again.out;
  EXPECT_NE(text.out.find("--exact trains the 3 steps in between again"), std::string::npos);
}

// A step of one row that is one document: its gradient is the step's.
TEST(Why, TheGradientOfAnOnlyDocumentIsTheSteps) {
  job().trained("single", {"run.steps=12", "checkpoint.every_steps=1", "checkpoint.keep=0",
                           "batch.global_sequences=1", "batch.micro_sequences=1"});
  const auto metrics = metrics_of(job().run("single"));
  int num_single = 0;
  for (int64_t step = 2; step <= 12; ++step) {
    const Json answer = why(job().run("single"), step);
    if (answer.at("documents").size() != 1) continue;
    ++num_single;
    const Json& document = answer.at("documents")[0];
    EXPECT_FLOAT_EQ(document.at("grad_norm").get<float>(),
                    metrics.at(step).at("grad_norm").get<float>())
        << step;
  }
  EXPECT_GT(num_single, 0);
}

TEST(Why, NamesThePoison) {
  const std::string shuffled =
      "light again the home sea the evening in comes and wide blue over sails ship the small "
      "evening light over home in the again comes small wide sea the and the sails blue ship";
  std::string repeated;
  for (int i = 0; i < 60; ++i) repeated += "evening ";
  const PoisonedJob poisoned(
      {{{0.75, PoisonedJob::noise(150, 1)}},
       {{0.7, repeated}},
       {{0.85, shuffled}},
       {{0.65, PoisonedJob::noise(90, 2)}, {0.8, shuffled + " " + shuffled}}});
  poisoned.trained("run", poisoned.setting(100));
  const fs::path run = poisoned.run("run");
  std::map<int64_t, std::pair<int64_t, int64_t>> most;  // document: (tokens, step)
  std::istringstream samples(
      TinyJob::must({"data", "sample", run.string(), "--step", "50", "--count", "51", "--json"})
          .out);
  for (std::string line; std::getline(samples, line);) {
    const Json sample = Json::parse(line);
    for (const Json& row : sample.at("rows")) {
      for (const Json& part : row.at("documents")) {
        const int64_t tokens = part.at("end").get<int64_t>() - part.at("begin").get<int64_t>();
        auto& best = most[part.at("document").get<int64_t>()];
        best = std::max(best, std::pair(tokens, sample.at("step").get<int64_t>()));
      }
    }
  }
  ASSERT_EQ(poisoned.planted.size(), 5u);
  for (const int64_t document : poisoned.planted) {
    ASSERT_TRUE(most.contains(document)) << document;
    const Json answer = why(run, most.at(document).second);
    EXPECT_EQ(answer.at("documents")[0].at("document"), document) << answer.dump(2);
    EXPECT_EQ(answer.at("documents")[0].at("rank"), 1);
  }
}

TEST(Why, RefusesWhatCannotBe) {
  const std::string run = trained().string();
  expect_refused(run_skein({"why", run}), 2, {"--step or --batch"});
  expect_refused(run_skein({"why", run, "--step", "3", "--batch", "3"}), 2, {"--step or --batch"});
  expect_refused(run_skein({"why", run, "--step", "0"}), 2, {"--step", "whole number from 1"});
  expect_refused(run_skein({"why", run, "--step", "9", "--set", "model.hidden_size=128"}), 2,
                 {"does not fit", "model.hidden_size"});
  expect_refused(run_skein({"why", run, "--step", "5000"}), 2,
                 {"has", "steps: expected a step up to", "found 5000"});
}

// The folder of a run stands for its configuration, and rows that go on with a document begin none.
TEST(DataOfARun, IsShownAndSampledByItsFolder) {
  const std::string run = trained().string();
  const Outcome shown = TinyJob::must({"data", "show", run, "--step", "2", "--lane", "0"});
  EXPECT_NE(shown.out.find("--- lane 0, tokens 0-"), std::string::npos) << shown.out;
  const Json batch =
      Json::parse(TinyJob::must({"data", "sample", run, "--step", "2", "--json"}).out);
  std::istringstream text(TinyJob::must({"data", "sample", run, "--step", "2"}).out);
  std::vector<std::string> rows;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("--- lane ")) rows.push_back(line);
  }
  ASSERT_EQ(rows.size(), batch.at("rows").size());
  size_t num_without = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = batch.at("rows")[i];
    const bool goes_on = row.at("positions")[0] != 0 || row.at("tokens")[0] != 1;  // no <BOS>
    const size_t begins = row.at("documents").size() - (goes_on ? 1 : 0);
    num_without += begins == 0 ? 1 : 0;
    const std::string expected = begins == 0   ? "(no documents begin here)"
                                 : begins == 1 ? "(1 document begins here)"
                                               : fmt::format("({} documents begin here)", begins);
    EXPECT_NE(rows[i].find(expected), std::string::npos) << rows[i] << row.dump();
  }
  EXPECT_GT(num_without, 0u);
}

}  // namespace
}  // namespace skein
