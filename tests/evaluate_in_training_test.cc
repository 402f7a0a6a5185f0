// [[evaluate]]: a run in training is evaluated through its own programs. The scores are those of
// `skein eval` on the same weights, they do not depend on the layout, and training keeps its bits.
#include <gmock/gmock.h>

#include "tests/parallel_job.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 4;

class EvaluatedJob : public ParallelJob {
 public:
  EvaluatedJob() {
    const std::string head = "dataset_path: made\ntest_split: test\n";
    write("tasks/choose.yaml", "task: choose\n" + head +
                                   "output_type: multiple_choice\ndoc_to_text: \"{{question}}\"\n"
                                   "doc_to_choice: options\ndoc_to_target: answer\n");
    write("tasks/read.yaml",
          "task: read\n" + head +
              "output_type: loglikelihood_rolling\ndoc_to_text: \"\"\n"
              "doc_to_target: \"{{question}} {{options[0]}} and so on, and on\"\n");
    write("tasks/complete.yaml", "task: complete\n" + head +
                                     "output_type: loglikelihood\ndoc_to_text: \"{{question}}\"\n"
                                     "doc_to_target: \" {{options[answer]}}\"\n");
    write("tasks/say.yaml", "task: say\n" + head +
                                "output_type: generate_until\ndoc_to_text: \"{{question}}\"\n"
                                "doc_to_target: \"{{options[answer]}}\"\n"
                                "generation_kwargs: {until: [\"\\n\"]}\n"
                                "metric_list:\n- {metric: exact_match, aggregation: mean}\n");
    write("tasks/both.yaml",
          "group: both\ntask: [choose]\n"
          "aggregate_metric_list:\n- {metric: acc, weight_by_size: true}\n");
    std::string rows;
    for (int i = 0; i < 13; ++i) {
      rows += fmt::format(R"({{"question": "word {}{}", "options": ["bird", "no", "he is"], )"
                          R"("answer": {}}})",
                          i, std::string(static_cast<size_t>(i % 3), 'w'), i % 3) +
              "\n";
    }
    write("data/made/test.jsonl", rows);
  }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  std::string evaluate(const std::string& tasks,
                       const std::string& more = "every_steps = 2") const {
    return fmt::format("evaluate=[{{tasks = \"{}\", include_path = \"{}\", data = \"{}\", {}}}]",
                       tasks, (folder / "tasks").string(), (folder / "data").string(), more);
  }
  // Of `skein eval` on the last checkpoint.
  OrderedJson results(const std::string& name, const std::string& tasks,
                      const Arguments& more = {}) const {
    Arguments words = {"eval",           run(name).string(),
                       "--tasks",        tasks,
                       "--include-path", (folder / "tasks").string(),
                       "--data",         (folder / "data").string(),
                       "--max-length",   "32",
                       "--threads",      "1",
                       "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return OrderedJson::parse(must(words).out).at("results");
  }
  // "STEP TASK METRIC" and the value.
  std::map<std::string, double> scores(const std::string& name) const {
    std::map<std::string, double> all;
    for (const OrderedJson& event : read_json_lines(run(name) / "events.jsonl")) {
      if (event.at("event") != "evaluation") continue;
      for (const OrderedJson& score : event.at("scores")) {
        const std::string key =
            fmt::format("{} {} {}", event.at("step").dump(), score.at("task").get<std::string>(),
                        score.at("metric").get<std::string>());
        EXPECT_TRUE(all.emplace(key, score.at("value").get<double>()).second) << key;
      }
    }
    return all;
  }
};

const EvaluatedJob& job() {
  static const EvaluatedJob job;
  return job;
}

// The run of one worker that the others are compared with.
const std::string& reference(const std::string& precision) {
  static std::map<std::string, std::string> runs;
  const auto [run, is_new] = runs.try_emplace(precision, "reference_" + precision);
  if (is_new) {
    job().trained(run->second, EvaluatedJob::setting(kSteps, precision) +
                                   Overrides{job().evaluate("both,complete,read")});
  }
  return run->second;
}

TEST(EvaluateInTraining, GivesTheScoresOfSkeinEval) {
  const auto found = job().scores(reference("fp32"));
  const OrderedJson results = job().results(reference("fp32"), "choose,read,complete");
  EXPECT_EQ(found.at("4 both acc"), results.at("choose").at("acc,none").get<double>());
  const double perplexity = results.at("complete").at("perplexity,none").get<double>();
  EXPECT_NEAR(found.at("4 complete perplexity"), perplexity, 1e-5 * perplexity);
  for (const std::string metric : {"word_perplexity", "byte_perplexity", "bits_per_byte"}) {
    const double expected = results.at("read").at(metric + ",none").get<double>();
    EXPECT_NEAR(found.at("4 read " + metric), expected, 1e-5 * expected) << metric;
  }
  EXPECT_EQ(found.size(), 10u);  // twice
  EXPECT_NE(found.at("2 complete perplexity"), found.at("4 complete perplexity"));
}

TEST(EvaluateInTraining, KeepsTheBitsOfTraining) {
  for (const std::string precision : {"fp32", "bf16-sr"}) {
    job().trained("quiet", EvaluatedJob::setting(kSteps, precision));
    EXPECT_EQ(
        different_bits(read_curve(job().run("quiet")), read_curve(job().run(reference(precision)))),
        "");
    EXPECT_EQ(different_state(job().checkpoint("quiet", kSteps),
                              job().checkpoint(reference(precision), kSteps)),
              "");
    job().remove("quiet");
  }
}

struct Case {
  const char* name;
  int64_t workers;
  Overrides overrides;
  bool is_exact = true;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }
class EvaluateInLayout : public ::testing::TestWithParam<Case> {};

TEST_P(EvaluateInLayout, GivesTheScoresOfOneWorker) {
  const Case& param = GetParam();
  const std::string name = param.name;
  const Outcome outcome = job().run_for(
      name, EvaluatedJob::setting(kSteps) + Overrides{job().evaluate("both,complete,read")} +
                Overrides{fmt::format("launch.workers={}", param.workers)} + param.overrides);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto expected = job().scores(reference("fp32")), found = job().scores(name);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [key, value] : expected) {
    if (param.is_exact) {
      EXPECT_EQ(found.at(key), value) << key;
    } else {
      EXPECT_NEAR(found.at(key), value, 1e-4 * value) << key;
    }
  }
  job().remove(name);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, EvaluateInLayout,
    ::testing::Values(
        Case{"data2", 2, {}}, Case{"data3_zero3", 3, {"parallel.zero=3"}},
        Case{"pipeline2", 2, {"parallel.pipeline=2"}},
        Case{"pipeline2_virtual2", 2, {"parallel.pipeline=2", "parallel.virtual_stages=2"}},
        Case{"tensor2", 2, {"parallel.tensor=2"}, false},
        Case{"context2", 2, {"parallel.context=2"}, false},
        Case{"tensor2_context2", 4, {"parallel.tensor=2", "parallel.context=2"}, false},
        Case{"larger_micro_batches",
             1,
             {"batch.micro_sequences=4", "parallel.reduction_width=2"},
             false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(EvaluateInTraining, GoesOnAfterAStop) {
  const Overrides base =
      EvaluatedJob::setting(kSteps) + Overrides{job().evaluate("both,complete,read")};
  job().trained("stopped", base + Overrides{"checkpoint.every_steps=1"});
  fs::remove_all(job().checkpoint("stopped", 4));
  job().trained("stopped", base);  // from step 3
  auto expected = job().scores(reference("fp32"));
  const Json report =
      Json::parse(TinyJob::must({"report", job().run("stopped").string(), "--json"}).out);
  EXPECT_EQ(report.at("steps"), 4);
  EXPECT_EQ(report.at("evaluations").size(), expected.size());
  for (const Json& one : report.at("evaluations")) {
    EXPECT_EQ(one.at("value").get<double>(),
              expected.at(fmt::format("{} {} {}", one.at("step").dump(),
                                      one.at("task").get<std::string>(),
                                      one.at("metric").get<std::string>())));
  }
}

// Also where no checkpoint is due at the last step.
TEST(EvaluateInTraining, SavesBeforeItEvaluates) {
  job().trained("saved", EvaluatedJob::setting(kSteps) +
                             Overrides{job().evaluate("both"), "checkpoint.every_steps=3"});
  std::vector<std::string> order;
  for (const OrderedJson& event : read_json_lines(job().run("saved") / "events.jsonl")) {
    const std::string name = event.at("event");
    if (name != "checkpoint_begin" && name != "evaluation") continue;
    order.push_back(fmt::format("{} {}", name, event.at("step").dump()));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"evaluation 2", "checkpoint_begin 3",
                                             "checkpoint_begin 4", "evaluation 4"}));
  job().remove("saved");
}

// Each text has a row of its own.
TEST(EvaluateInTraining, WithoutADocumentMask) {
  const Overrides base = EvaluatedJob::setting(kSteps) + Overrides{"data.document_mask=false"};
  job().trained("without_mask", base + Overrides{job().evaluate("choose,complete", "limit = 5")});
  const OrderedJson results = job().results("without_mask", "choose,complete", {"--limit", "5"});
  const auto found = job().scores("without_mask");
  EXPECT_EQ(found.at("4 choose acc"), results.at("choose").at("acc,none").get<double>());
  EXPECT_EQ(found.at("4 choose acc_norm"), results.at("choose").at("acc_norm,none").get<double>());
  const double perplexity = results.at("complete").at("perplexity,none").get<double>();
  EXPECT_NEAR(found.at("4 complete perplexity"), perplexity, 1e-5 * perplexity);
}

// Its process ended between the save of a step and its evaluation.
TEST(EvaluateInTraining, MakesUpForWhatIsMissing) {
  const Overrides base =
      EvaluatedJob::setting(kSteps) + Overrides{job().evaluate("both,complete,read")};
  job().trained("missing", base);
  const fs::path events = job().run("missing") / "events.jsonl";
  std::string kept;
  std::istringstream lines(read_file(events));
  for (std::string line; std::getline(lines, line);) {
    const bool is_last = line.find("\"evaluation\", \"step\": 4") != std::string::npos;
    if (!is_last) kept += line + "\n";
  }
  std::ofstream(events) << kept;
  const auto expected = job().scores(reference("fp32"));
  ASSERT_LT(job().scores("missing").size(), expected.size());
  job().trained("missing", base);
  EXPECT_EQ(job().scores("missing"), expected);
  const std::string after = read_file(events);
  job().trained("missing", base);
  EXPECT_EQ(read_file(events), after) << "there is nothing more to do";
}

TEST(EvaluateInTraining, SaysWhatItDoes) {
  const Outcome outcome = TinyJob::must(job().arguments(
      "train", "told",
      EvaluatedJob::setting(kSteps) + Overrides{job().evaluate("choose,complete")}));
  EXPECT_THAT(outcome.err, HasSubstr("evaluation every 2 steps and at the end: choose,complete, 26 "
                                     "documents in 52 texts"));
  EXPECT_THAT(outcome.err, HasSubstr("leaves out complete: acc"));
  EXPECT_THAT(outcome.err, HasSubstr("step 4: choose acc"));
}

TEST(EvaluateInTraining, RefusesWhatItCannotDo) {
  const auto refused = [&](const std::string& evaluate, const std::string& words) {
    const Outcome outcome = run_skein(
        job().arguments("train", "refused", EvaluatedJob::setting(kSteps) + Overrides{evaluate}));
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(job().run("refused") / "metrics.jsonl"));
  };
  refused(job().evaluate("say"), "task say generates text");
  refused(job().evaluate("chose"), "choose");
  refused(job().evaluate("choose", "every_stps = 2"), "did you mean every_steps?");
  refused(job().evaluate("choose", "limit = -1"), "limit is -1");
  refused("evaluate=[{every_steps = 2}]", "there are no tasks");
  refused("evaluate=choose", "not valid TOML");
  refused("evaluate=[{tasks = \"choose\"}, {tasks = \"{config_dir}/a.yaml\"}]",
          "include_path alone");
  std::string twice = job().evaluate("choose");
  twice.insert(twice.size() - 1,
               ", " + twice.substr(twice.find('{'), twice.size() - 1 - twice.find('{')));
  refused(twice, "the task choose is in two tables");
  refused("evaluate.limit=3", "evaluate is a list of tables");
}

TEST(EvaluateInTraining, IsInTheRunsOwnConfiguration) {
  const std::string text = read_file(job().run(reference("fp32")) / "config.toml");
  EXPECT_THAT(text, HasSubstr("[[evaluate]]\ntasks = \"both,complete,read\"\nevery_steps = 2\n"));
}

}  // namespace
}  // namespace skein
