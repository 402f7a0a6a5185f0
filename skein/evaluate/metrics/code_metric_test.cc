// testdata/code.json is made by scripts/goldens/evaluation_code.py.
#include "skein/evaluate/metrics/code_metric.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "skein/base/text/json.h"
#include "skein/evaluate/metrics/metric.h"
#include "skein/evaluate/yaml/yaml_value.h"
#include "skein/jinja/values/json_value.h"
#include "skein/jinja/values/printed.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using jinja::Value;
using test::error_of;

Value value_of(const Json& json) { return jinja::json_value(json.dump(), "a case"); }

Value function(const std::string& folder, const std::string& name) {
  const auto made = std::make_shared<YamlFunction>();
  made->name = "utils." + name;
  made->file = "/no/such/folder/" + folder + "/task.yaml";
  return Value::of(jinja::Kind::kCallable, made);
}

AnswerFilter filter_of(const Value& called) {
  FilterConfig config;
  config.name = "made";
  FilterConfig::Step& step = config.steps.emplace_back();
  step.function = "custom";
  const auto options = std::make_shared<jinja::Dict>();
  options->set(Value::string("filter_fn"), called);
  step.options = Value::of(jinja::Kind::kDict, options);
  return AnswerFilter(config);
}

MetricConfig metric_of(const std::string& folder, const std::string& name,
                       const std::string& options) {
  MetricConfig config;
  config.name = name;
  config.function = function(folder, name);
  config.options = jinja::json_value(options, "options");
  return config;
}

TEST(CodeStep, MakesTheProgramsOfTheHarness) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Json recorded = read_json((folder / "testdata/code.json").string());
  const Json cases = recorded.at("filters");
  ASSERT_EQ(cases.size(), 4U);
  for (const Json& one : cases) {
    const AnswerFilter filter = filter_of(function(one.at("folder"), one.at("name")));
    const Json& answers = one.at("answers");
    ASSERT_GE(answers.size(), 80U);
    const std::vector<Value> made =
        filter.apply({value_of(answers)}, {value_of(one.at("document"))});
    const std::vector<Value>& programs = made.at(0).as_sequence().items;
    ASSERT_EQ(programs.size(), answers.size());
    for (size_t i = 0; i < programs.size(); ++i) {
      EXPECT_EQ(programs[i].text(), one.at("programs").at(i).get<std::string>())
          << one.at("folder") << ": " << answers.at(i);
    }
  }
}

TEST(CodeStep, RefusesWhatIsNotBuiltIn) {
  EXPECT_EQ(
      error_of([] { filter_of(function("humaneval", "other")); }),
      "filter made: step 1, custom, filter_fn other is a function of Python, which Skein does "
      "not run. Built in are those of humaneval, humaneval_infilling and mbpp of "
      "lm-evaluation-harness 0.4.13");
  EXPECT_NE(error_of([] { filter_of(Value()); }).find("filter_fn is missing"), std::string::npos);
  const AnswerFilter filter = filter_of(function("humaneval", "build_predictions"));
  EXPECT_EQ(error_of([&] {
              filter.apply({value_of({"x"})}, {value_of({{"text", "y"}})});
            }),
            "filter made: step 1, custom: document 0: the document has no text in the column "
            "'prompt'");
}

TEST(CodeMetric, HasAScoreForEachK) {
  const ScoredMetric metric = make_metric(metric_of("humaneval", "pass_at_k", R"({"k": [1, 64]})"),
                                          OutputType::kGenerateUntil);
  ASSERT_TRUE(metric.code);
  ASSERT_EQ(metric.code->scores.size(), 2U);
  EXPECT_EQ(metric.code->scores[1].name, "pass@64");
  EXPECT_EQ(metric.code->scores[1].k, 64);
  EXPECT_EQ(metric.aggregation, "mean");
  EXPECT_TRUE(metric.higher_is_better);
  EXPECT_EQ(code_metric(metric_of("humaneval_infilling", "pass_at_k", R"({"k": 2})")).scores[0].k,
            2);
  EXPECT_EQ(code_metric(metric_of("mbpp", "pass_at_1", "{}")).scores[0].name, "pass_at_1");
}

TEST(CodeMetric, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](const char* folder, const char* name, const char* options) {
    return error_of([&] { code_metric(metric_of(folder, name, options)); });
  };
  for (const char* const options : {"{}", R"({"k": [0]})", R"({"k": "1"})", R"({"k": [1.5]})"}) {
    EXPECT_EQ(refusal("humaneval", "pass_at_k", options),
              "the metric pass_at_k: k: expected whole numbers above 0, as [1, 10]");
  }
  EXPECT_NE(refusal("humaneval", "pass_at_k", R"({"k": [], "n": 1})").find("n"), std::string::npos);
  EXPECT_NE(refusal("mbpp", "pass_at_1", R"({"k": [1]})").find("k"), std::string::npos);
  EXPECT_EQ(refusal("cruxeval", "pass_at_1", "{}").find("the metric pass_at_1 is a function of"),
            0U);
  EXPECT_NE(error_of([] {
              make_metric(metric_of("humaneval", "pass_at_k", R"({"k": 1})"),
                          OutputType::kMultipleChoice);
            }).find("pass_at_k of multiple_choice is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace skein
