// `skein eval` reads tasks and data, asks the model, and writes what lm-evaluation-harness writes.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/sandbox_testing.h"
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
  EXPECT_THAT(outcome.out, HasSubstr(" on cpu in f32\n|Tasks"));
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
  const Outcome table = run_skein(job().arguments("choose", {"--limit", "2"}));
  EXPECT_THAT(table.out, HasSubstr(" on cpu in f32, at most 2 documents of each task\n"));
}

TEST(Eval, ListsTasks) {
  const Outcome list = run_skein(job().arguments("list"));
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("both (group)\n"));
  EXPECT_THAT(list.out, HasSubstr("\nchoose\n"));
}

TEST(Eval, CompanyChangesNoAnswer) {
  const fs::path together = job().folder / "together", alone = job().folder / "alone";
  job().results("say,choose", {"--out", together.string(), "--log-samples"});
  job().results("say", {"--out", alone.string(), "--log-samples", "--limit", "1"});
  const auto of_all = samples_of(together, "say"), of_one = samples_of(alone, "say");
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_EQ(of_all.at(0), of_one.at(0));
}

TEST(Eval, ReplicasGiveTheSameAnswers) {
  const fs::path one = job().folder / "one", three = job().folder / "three";
  job().results("say,choose", {"--out", one.string(), "--log-samples"});
  job().results("say,choose", {"--out", three.string(), "--log-samples", "--replicas", "3"});
  for (const char* task : {"say", "choose"}) {
    EXPECT_EQ(samples_of(one, task), samples_of(three, task));
  }
  // Ranks that split the model add in another order.
  const OrderedJson split = job().results("choose", {"--tensor", "2", "--replicas", "2"});
  EXPECT_EQ(split.at("results").at("choose").at("acc,none"),
            job().results("choose").at("results").at("choose").at("acc,none"));
  const Outcome refused = run_skein(job().arguments("choose", {"--tensor", "3"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("cannot split the model's num_attention_heads, which is 4"));
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
  job().write("tasks/gone.yaml", "include: lost.yaml\ntask: gone\n");
  refused(job().arguments("lost,choose,gone"), 1, "Data are missing for 1 task more: gone");
  job().write("tasks/renamed.yaml",
              "include: choose.yaml\ntask: renamed\ndoc_to_text: \"{{goal}}\"\n");
  refused(job().arguments("renamed"), 1,
          "'goal' is undefined; the document has the columns question, options, answer");
  refused(job().arguments("choose", {"--out", "/proc/results"}), 2, "--out is '/proc/results'");
  refused(job().arguments("choose", {"--data", "/nowhere"}), 2, "--data /nowhere: there is no");
  refused(job().arguments("choose", {"--limit", "0"}), 2, "expected a whole number of documents");
  refused(job().arguments("choose", {"--limit", "1.5"}), 2, "expected a whole number of documents");
}

// The programs of a task: a comment, which the model continues to the end of its line, and a test
// of each document's own. The functions are those of humaneval's folder.
class CodeJob {
 public:
  CodeJob() {
    job().write("tasks/humaneval/code.yaml",
                "task: code\ndataset_path: programs\noutput_type: generate_until\n"
                "test_split: test\nunsafe_code: true\nrepeats: 3\n"
                "doc_to_text: \"{{prompt}}\"\ndoc_to_target: \"{{test}}\"\n"
                "generation_kwargs: {until: [\"\\n\"], max_gen_toks: 4, do_sample: true, "
                "temperature: 0.7}\n"
                "metric_list:\n- metric: !function utils.pass_at_k\n  aggregation: mean\n"
                "  higher_is_better: true\n  k: [1, 3]\n"
                "filter_list:\n- name: create_test\n  filter:\n  - function: custom\n"
                "    filter_fn: !function utils.build_predictions\n");
    job().write("data/programs/test.jsonl",
                "{\"prompt\": \"# words\", \"test\": \"assert 1 + 1 == 2\"}\n"
                "{\"prompt\": \"# words\", \"test\": \"assert 1 + 1 == 3\"}\n"
                "{\"prompt\": \"# words\", \"test\": \"import os; os.stat('/etc/passwd')\"}\n"
                "{\"prompt\": \"# words\", \"test\": \"x = 1\"}\n");
  }
};

TEST(Eval, ProgramsRunIfTheyAreAllowedTo) {
  std::string why_not;
  const bool has_sandbox = test::make_sandbox(3, why_not) != nullptr;
  const CodeJob code;
  const Outcome refused = run_skein(job().arguments("code"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("task code runs the programs that the model writes"));
  EXPECT_THAT(refused.err, HasSubstr("add --execute to allow it"));

  const fs::path out = job().folder / "code";
  const Outcome outcome = run_skein(job().arguments(
      "code", {"--confirm_run_unsafe_code", "--out", out.string(), "--log-samples", "--json"}));
  if (!has_sandbox) {
    EXPECT_NE(outcome.exit_code, 0);
    GTEST_SKIP() << why_not;
  }
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  const OrderedJson& scores = json.at("results").at("code");
  EXPECT_EQ(scores.at("pass@1,create_test"), 0.5);
  EXPECT_EQ(scores.at("pass@3,create_test"), 0.5);
  EXPECT_NEAR(scores.at("pass@1_stderr,create_test").get<double>(), 0.2887, 1e-4);
  EXPECT_EQ(json.at("higher_is_better").at("code").at("pass@1"), true);
  const std::vector<OrderedJson> samples = samples_of(out, "code");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].at("metrics"), (OrderedJson{"pass@1", "pass@3"}));
  EXPECT_EQ(samples[0].at("pass@1"), 1.0);
  EXPECT_EQ(samples[0].at("programs"), (OrderedJson{"passed", "passed", "passed"}));
  ASSERT_EQ(samples[0].at("resps").at(0).size(), 3u);
  EXPECT_EQ(samples[0].at("filtered_resps").at(0).at(2),
            "# words" + samples[0].at("resps").at(0).at(2).get<std::string>());
  EXPECT_EQ(samples[1].at("pass@3"), 0.0);
  EXPECT_THAT(samples[1].at("programs").at(0), "failed: AssertionError: ");
  EXPECT_THAT(samples[2].at("programs").at(0).get<std::string>(), HasSubstr("FileNotFoundError"));
}

TEST(Eval, ProgramsNeedEnoughAnswers) {
  const CodeJob code;
  std::string text = "include: code.yaml\ntask: few\nrepeats: 2\n";
  job().write("tasks/humaneval/few.yaml", text);
  const Outcome outcome = run_skein(job().arguments("few", {"--execute"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("task few: pass@3 needs 3 answers to a document, and repeats "
                                     "is 2"));
  const Outcome idle = run_skein(job().arguments("say", {"--execute"}));
  EXPECT_EQ(idle.exit_code, 0);
  EXPECT_THAT(idle.err, HasSubstr("--execute has no effect: no task runs programs"));
}

// What they score is what the same texts score as a task.
TEST(Eval, ScoresRequestsThatAreWrittenOut) {
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    for (int choice = 0; choice < 2; ++choice) {
      lines += fmt::format(
          R"({{"request_type": "loglikelihood", "doc_id": {}, "idx": {}, "label": {}, "request": )"
          R"({{"context": "word {} is", "continuation": " {}"}}}})",
          i, choice, i % 2, i, choice == 0 ? "a bird" : "no");
      lines += "\n";
    }
  }
  job().write("olmes/made/rc_0shot/requests.jsonl", lines);
  const std::string file = (job().folder / "olmes/made/rc_0shot/requests.jsonl").string();
  const OrderedJson results = job().results(file + ",choose").at("results");
  const OrderedJson &written = results.at("made:rc_0shot"), &task = results.at("choose");
  EXPECT_EQ(written.at("acc,none"), task.at("acc,none"));
  EXPECT_GT(written.at("gold_bits_per_byte,none").get<double>(), 0.1);
  const Outcome refused = run_skein(job().arguments(file, {"--num-fewshot", "1"}));
  EXPECT_THAT(refused.err, HasSubstr("written out already"));
}

// What was done before is not done again: after a kill, one call does the rest.
TEST(Eval, EvaluatesAllCheckpointsOnce) {
  job().trained("saved", {"run.steps=6", "checkpoint.every_steps=2"});
  const fs::path run = job().run("saved");
  Arguments words = job().arguments("both", {"--all-checkpoints"});
  words[1] = run.string();
  const Outcome first = run_skein(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("both acc\n"));
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(run / "eval")) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 3u);
  const Outcome again = run_skein(words);
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.err, HasSubstr("step 2: evaluated before\nstep 4: evaluated before\n"));
  EXPECT_EQ(again.err.find("written"), std::string::npos);
  fs::remove(files[0]);
  const Outcome rest = run_skein(words);
  EXPECT_EQ(rest.out, first.out);
  EXPECT_EQ(rest.err.find("written"), rest.err.rfind("written"));
  EXPECT_THAT(rest.err, HasSubstr("written"));
  const OrderedJson one = OrderedJson::parse(read_file(files[1]));
  EXPECT_EQ(one.at("skein").at("run").at("checkpoint").get<std::string>().size(), 32u);
  EXPECT_TRUE(one.at("skein").at("asked").at("digests").contains("choose"));
  EXPECT_TRUE(one.at("skein").contains("commit"));
  // The same names with other documents are another question.
  job().write("other/made/test.jsonl",
              "{\"question\": \"is it\", \"options\": [\"so\", \"no\"], \"answer\": 1}\n");
  Arguments elsewhere = words;
  *(std::ranges::find(elsewhere, "--data") + 1) = (job().folder / "other").string();
  EXPECT_EQ(run_skein(elsewhere).err.find("evaluated before"), std::string::npos);
  // Results outlive their checkpoint.
  fs::remove_all(job().checkpoint("saved", 2));
  const Outcome gone = run_skein(words);
  EXPECT_EQ(gone.out, first.out);
  EXPECT_THAT(gone.err, HasSubstr("step 2: evaluated before; its checkpoint is gone"));
  // Another question, and another run's folder of results, have other results.
  Arguments other = words;
  other.insert(other.end(), {"--limit", "2", "--json"});
  const OrderedJson all = OrderedJson::parse(TinyJob::must(other).out).at("checkpoints");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].at("skein").at("run").at("step"), 6);
  EXPECT_EQ(all[1].at("n-samples").at("choose").at("effective"), 2);
  // The report reads them, each question by itself.
  const Outcome report = run_skein({"report", run.string(), "--diff", "--json"});
  EXPECT_THAT(report.out, HasSubstr("eval.choose.acc"));
  EXPECT_THAT(report.out, HasSubstr("eval.choose (2 documents).acc"));
  // What lies behind the newest checkpoint is no longer of this run's curve.
  fs::remove_all(job().checkpoint("saved", 6));
  EXPECT_THAT(run_skein(words).err, HasSubstr("step 6: evaluated before, and behind the newest"));
}

TEST(Eval, RefusesAllCheckpointsOfAFolderWithoutAny) {
  Arguments words = job().arguments("both", {"--all-checkpoints"});
  words[1] = (job().folder / "data").string();
  const Outcome outcome = run_skein(words);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("holds no checkpoint"));
}

}  // namespace
}  // namespace skein
