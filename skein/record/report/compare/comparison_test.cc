#include "skein/record/report/compare/comparison.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/error.h"
#include "skein/record/files/events.h"

namespace skein {
namespace {

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / "comparison" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string write_run(const std::string& name, const std::string& config, float loss,
                      int64_t num_steps = 3) {
  const fs::path folder = fresh_folder(name);
  std::ofstream(folder / "config.toml") << config;
  std::ofstream events(folder / "events.jsonl"), metrics(folder / "metrics.jsonl");
  events << event_line(100, "start", {{"step", 0}, {"version", "0.1.0"}, {"ranks", 2}}) << "\n";
  for (int64_t step = 1; step <= num_steps; ++step) {
    metrics << metrics_line({.step = step,
                             .loss = loss + 1.0f / static_cast<float>(step),
                             .tokens = step * 1000,
                             .tokens_per_s = 500,
                             .step_ms = 1000,
                             .time = 100.0 + static_cast<double>(step)})
            << "\n";
  }
  events << event_line(104, "validation", {{"step", num_steps}, {"loss", loss}}) << "\n"
         << event_line(105, "stop", {{"step", num_steps}, {"reason", "done"}}) << "\n";
  return folder.string();
}

ComparedRuns compared(const std::vector<std::string>& folders) {
  return read_compared_runs(folders, [](const ComparedRun&, const RunReport&) {});
}

TEST(Comparison, OnlyKeysThatDifferAreShown) {
  const ComparedRuns runs = compared(
      {write_run("one", "[run]\ndir = \"a\"\nseed = 1\n[optimizer]\nlearning_rate = 3e-3\n", 2),
       write_run("two",
                 "[run]\ndir = \"b\"\nseed = 1\n[optimizer]\nlearning_rate = 1e-3\n"
                 "[data]\ntext = \"\"\nlist = [{w = 0.1, n = \"x\"}]\n",
                 1)});
  const std::vector<SettingDifference> differences = differences_of(runs);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].key, "optimizer.learning_rate");
  EXPECT_EQ(differences[0].values[0], "0.003");
  EXPECT_EQ(differences[0].values[1], "0.001");
  EXPECT_EQ(differences[1].key, "data.text");
  EXPECT_EQ(differences[1].values[0], std::nullopt);
  EXPECT_EQ(differences[1].values[1], "");
  EXPECT_EQ(differences[2].values[1], "[{n = \"x\", w = 0.1}]");

  const std::string text = comparison_text(runs, 100);
  EXPECT_NE(text.find("optimizer.learning_rate  0.003"), std::string::npos) << text;
  EXPECT_EQ(text.find("run.seed"), std::string::npos) << text;
  EXPECT_EQ(text.find("run.dir"), std::string::npos) << text;
  EXPECT_NE(text.find("validation.loss"), std::string::npos) << text;
  const OrderedJson json = comparison_json(runs);
  EXPECT_EQ(json["runs"][1]["metrics"]["validation.loss"], 1.0);
  EXPECT_EQ(json["runs"][1]["name"], "two");
  EXPECT_EQ(json["differences"][1]["values"], OrderedJson::parse(R"([null, ""])"));
}

TEST(Comparison, EqualRunsSaySo) {
  const std::string config = "[run]\nseed = 1\n";
  const ComparedRuns runs = compared({write_run("a", config, 2), write_run("b", config, 2)});
  EXPECT_NE(comparison_text(runs, 80).find("the settings are equal"), std::string::npos);
}

TEST(Comparison, TheSizesOfAModelInAFileAreCompared) {
  const std::string config = "[model]\nhf_config = \"{config_dir}/model.json\"\n";
  const std::string one = write_run("m1", config, 2), two = write_run("m2", config, 2);
  std::ofstream(fs::path(one) / "model.json") << R"({"hidden_size": 64, "model_type": "llama"})";
  std::ofstream(fs::path(two) / "model.json") << R"({"hidden_size": 128, "model_type": "llama"})";
  const std::vector<SettingDifference> differences = differences_of(compared({one, two}));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "model.json.hidden_size");
  EXPECT_EQ(differences[0].values[1], "128");
}

TEST(Comparison, SortsTheBestFirstAndRunsWithoutTheFigureLast) {
  const std::string nothing = fresh_folder("nothing").string();
  std::ofstream(fs::path(nothing) / "config.toml") << "[run]\nsteps = 9\n";
  ComparedRuns runs = compared(
      {nothing, write_run("high", "", 3, 5), write_run("low", "", 1, 4), write_run("mid", "", 2)});
  EXPECT_EQ(runs.list[0].state, "not begun");
  EXPECT_EQ(sort_runs(runs, "validation.loss"), (std::vector<size_t>{2, 3, 1, 0}));
  EXPECT_EQ(runs.list[0].name, "low");
  EXPECT_EQ(runs.list[3].name, "nothing");
  sort_runs(runs, "tokens");  // more is better
  EXPECT_EQ(runs.list[0].name, "high");
  try {
    sort_runs(runs, "validation.los");
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("did you mean validation.loss?"), std::string::npos)
        << error.what();
  }
}

TEST(Comparison, WhatDoesNotFitFollowsBelow) {
  std::vector<std::string> folders;
  for (int i = 0; i < 5; ++i) folders.push_back(write_run(fmt::format("wide-{}", i), "", 2));
  const std::string text = comparison_text(compared(folders), 60);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(text.find(fmt::format("wide-{}", i)), std::string::npos) << text;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
  EXPECT_NE(text.find("\n\nrun "), std::string::npos) << text;
}

TEST(Comparison, DamagedAndMissingFilesAreNoted) {
  const std::string good = write_run("good", "", 2), torn = write_run("torn", "[run\n", 2);
  std::ofstream(fs::path(torn) / "metrics.jsonl", std::ios::app) << "{\"step\": 4, \"lo\n";
  fs::create_directories(fs::path(torn) / "eval/m");
  std::ofstream(fs::path(torn) / "eval/m/results_1.json") << "[]";
  const fs::path log = fs::path(good).parent_path() / "0000.log";
  std::ofstream(log) << "text";
  const ComparedRuns runs = compared({good, log.string(), torn, good});
  ASSERT_EQ(runs.list.size(), 2u);
  ASSERT_EQ(runs.notes.size(), 2u);
  EXPECT_NE(runs.notes[0].find("0000.log: no run folder"), std::string::npos);
  EXPECT_NE(runs.notes[1].find("named twice"), std::string::npos);
  ASSERT_EQ(runs.list[1].notes.size(), 3u);
  EXPECT_NE(runs.list[1].notes[0].find("config.toml"), std::string::npos);
  EXPECT_NE(runs.list[1].notes[1].find("results_1.json"), std::string::npos);
  EXPECT_NE(runs.list[1].notes[2].find("1 lines"), std::string::npos);
  EXPECT_TRUE(differences_of(runs).empty());
  EXPECT_THROW(compared({good, good + "-gone"}), Error);
  EXPECT_THROW(compared({log.string()}), Error);
}

TEST(Comparison, NamesAreTheShortestThatDiffer) {
  EXPECT_EQ(distinct_names({"runs/a", "runs/b/"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(distinct_names({"x/0000", "y/0000", "y/0001"}),
            (std::vector<std::string>{"x/0000", "y/0000", "0001"}));
  EXPECT_EQ(distinct_names({"same", "same"}).size(), 2u);
}

TEST(Comparison, ReadsEvaluationsOfFilesAndOfMetrics) {
  const std::string run = write_run("evaluated", "", 2);
  fs::create_directories(fs::path(run) / "eval/model");
  std::ofstream(fs::path(run) / "eval/model/results_2.json") << R"({
    "results": {"piqa": {"alias": "piqa", "acc,none": 0.75, "acc_stderr,none": 0.01},
                "gsm8k": {"exact_match,strict": 0.5, "exact_match_stderr,strict": "N/A"}},
    "n-samples": {"piqa": {"original": 1838, "effective": 100}}, "n-shot": {"piqa": 5},
    "higher_is_better": {"piqa": {"acc": true}}, "date": 5, "skein": {"run": {"step": 2}}})";
  std::ofstream(fs::path(run) / "eval/model/results_1.json")
      << R"({"results": {"piqa": {"acc,none": 0.25}}, "date": 3, "skein": {"run": {"step": 1}}})";
  std::ofstream(fs::path(run) / "eval/model/results_3.json") << R"({
    "results": {"piqa": {"acc,none": 0.5}}, "n-samples": {"piqa": {"effective": 10}},
    "n-shot": {"piqa": 0}, "date": 7, "skein": {"run": {"step": 2}}})";
  std::ofstream(fs::path(run) / "metrics.jsonl", std::ios::app)
      << R"({"step": 4, "loss": 1.5, "eval.arc_easy.acc": 0.625})"
      << "\n";
  const ComparedRuns runs = compared({run});
  const RunEvaluations& evaluations = runs.list[0].evaluations;
  ASSERT_EQ(evaluations.list.size(), 4u);
  EXPECT_EQ(evaluations.list[0].step, 1);
  EXPECT_EQ(evaluations.list[3].file, "training");
  const std::vector<EvaluatedScore> newest = newest_scores(evaluations);
  ASSERT_EQ(newest.size(), 4u);
  EXPECT_EQ(newest[0].name(), "eval.arc_easy.acc");
  EXPECT_EQ(newest[1].name(), "eval.gsm8k.exact_match,strict");
  EXPECT_EQ(newest[1].error, std::nullopt);
  EXPECT_EQ(newest[2].name(), "eval.piqa (10 documents, 0-shot).acc");
  EXPECT_EQ(newest[2].value, 0.5);
  EXPECT_EQ(newest[3].name(), "eval.piqa.acc");
  EXPECT_EQ(newest[3].value, 0.75);
  EXPECT_EQ(newest[3].error, 0.01);
  EXPECT_EQ(newest[3].num_documents, 100);
  EXPECT_EQ(newest[3].num_fewshot, 5);
  EXPECT_EQ(newest[3].higher_is_better, true);
  ASSERT_NE(runs.list[0].find("eval.piqa.acc"), nullptr);
}

}  // namespace
}  // namespace skein
