// `skein eval` reads tasks and data, asks the model, and writes what lm-evaluation-harness writes.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/testing.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

// A trained model, two tasks of which one generates, and their group.
class EvalJob : public TinyJob {
 public:
  EvalJob() {
    trained("model", {"run.steps=20"});
    write("tasks/choose.yaml",
          "task: choose\ndataset_path: made\noutput_type: multiple_choice\ntest_split: test\n"
          "doc_to_text: \"{{question}}\"\ndoc_to_choice: options\ndoc_to_target: answer\n"
          "metric_list:\n- metric: acc\n- metric: acc_norm\nmetadata: {version: 2}\n");
    write("tasks/say.yaml",
          "task: say\ndataset_path: made\noutput_type: generate_until\ntest_split: test\n"
          "doc_to_text: \"{{question}}\"\ndoc_to_target: \"{{options[answer]}}\"\n"
          "generation_kwargs: {until: [\"\\n\"], max_gen_toks: 5}\n"
          "metric_list:\n- {metric: exact_match, aggregation: mean, higher_is_better: true}\n");
    write("tasks/both.yaml",
          "group: both\ntask: [choose]\n"
          "aggregate_metric_list:\n- {metric: acc, weight_by_size: true}\n");
    std::string rows;
    for (int i = 0; i < 6; ++i) {
      rows +=
          fmt::format(R"({{"question": "word {} is", "options": ["a bird", "no"], "answer": {}}})",
                      i, i % 2) +
          "\n";
    }
    write("data/made/test.jsonl", rows);
  }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  Arguments arguments(const std::string& tasks, const Arguments& more = {}) const {
    Arguments words = {"eval",   run("model").string(),      "--tasks",
                       tasks,    "--include-path",           (folder / "tasks").string(),
                       "--data", (folder / "data").string(), "--threads",
                       "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  OrderedJson results(const std::string& tasks, const Arguments& more = {}) const {
    Arguments all = more;
    all.emplace_back("--json");
    return OrderedJson::parse(must(arguments(tasks, all)).out);
  }
};

const EvalJob& job() {
  static const EvalJob job;
  return job;
}

std::vector<OrderedJson> samples_of(const fs::path& folder, const std::string& task) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("samples_" + task + "_")) {
      return read_json_lines(entry.path());
    }
  }
  return {};
}

TEST(Eval, PrintsATableOfScores) {
  const Outcome outcome = run_skein(job().arguments("both,say"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("|Tasks"));
  EXPECT_THAT(outcome.out, HasSubstr("| - choose|"));
  EXPECT_THAT(outcome.out, HasSubstr("exact_match"));
}

TEST(Eval, ScoresAreThoseOfTheSamples) {
  const fs::path out = job().folder / "out";
  const OrderedJson json = job().results("both", {"--out", out.string(), "--log-samples"});
  const std::vector<OrderedJson> samples = samples_of(out, "choose");
  ASSERT_EQ(samples.size(), 6u);
  double right = 0;
  for (const OrderedJson& sample : samples) {
    const auto logprob = [&](int choice) {
      return std::stod(sample.at("filtered_resps").at(choice).at(0).get<std::string>());
    };
    EXPECT_LT(logprob(0), 0);
    const int best = logprob(0) >= logprob(1) ? 0 : 1;
    EXPECT_EQ(sample.at("acc").get<double>(), std::to_string(best) == sample.at("target") ? 1 : 0);
    EXPECT_EQ(sample.at("arguments").at("gen_args_1").at("arg_1"), " no");
    right += sample.at("acc").get<double>();
  }
  const OrderedJson& scores = json.at("results").at("choose");
  EXPECT_DOUBLE_EQ(scores.at("acc,none").get<double>(), right / 6);
  EXPECT_EQ(scores.at("sample_len"), 6);
  EXPECT_EQ(json.at("versions").at("choose"), 2);
  EXPECT_EQ(json.at("groups").at("both").at("acc,none"), scores.at("acc,none"));
  EXPECT_EQ(json.at("n-samples").at("choose").at("original"), 6);
}

TEST(Eval, SpellingsOfTheHarnessAreUnderstood) {
  const OrderedJson json =
      job().results("choose", {"--limit", "2", "--num_fewshot", "0", "--precision", "bf16"});
  EXPECT_EQ(json.at("results").at("choose").at("sample_len"), 2);
  EXPECT_EQ(json.at("config").at("model_dtype"), "bf16");
  EXPECT_EQ(json.at("config").at("limit"), 2);
}

TEST(Eval, CompanyChangesNoAnswer) {
  const fs::path together = job().folder / "together", alone = job().folder / "alone";
  job().results("say,choose", {"--out", together.string(), "--log-samples"});
  job().results("say", {"--out", alone.string(), "--log-samples", "--limit", "1"});
  const auto of_all = samples_of(together, "say"), of_one = samples_of(alone, "say");
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_EQ(of_all.at(0), of_one.at(0));
}

TEST(Eval, WhatIsWrongIsNamedBeforeTheModelIsAsked) {
  const auto refused = [](const Arguments& arguments, int code, const char* words) {
    const Outcome outcome = run_skein(arguments);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  refused(job().arguments("chose"), 1, "choose");
  refused(job().arguments("choose", {"--log-samples"}), 2, "--log-samples: nothing is written");
  refused(job().arguments("choose", {"--max-length", "1000000"}), 2, "--max-length 1000000");
  job().write("tasks/lost.yaml",
              "task: lost\ndataset_path: nowhere/at_all\noutput_type: multiple_choice\n"
              "test_split: test\ndoc_to_text: a\ndoc_to_choice: b\ndoc_to_target: c\n");
  refused(job().arguments("lost"), 1, "data set nowhere/at_all: not on this machine");
}

}  // namespace
}  // namespace skein
