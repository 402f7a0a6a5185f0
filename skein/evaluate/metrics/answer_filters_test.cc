// testdata/metrics/filters.json is made by scripts/goldens/evaluation_metrics.py.
#include "skein/evaluate/metrics/answer_filters.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/jinja/values/json_value.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Value;

Value value_of(const Json& json) { return jinja::json_value(json.dump(), "a case"); }

Json json_of(const Value& value) {
  jinja::Budget budget{jinja::Limits{}};
  return Json::parse(jinja::json_text(value, {}, budget));
}

std::vector<Value> values_of(const Json& json) {
  std::vector<Value> values;
  for (const Json& one : json) values.push_back(value_of(one));
  return values;
}

FilterConfig config_of(const Json& steps) {
  FilterConfig config;
  config.name = "made";
  for (const Json& step : steps) {
    FilterConfig::Step& one = config.steps.emplace_back();
    one.function = step.at("function").get<std::string>();
    Json options = Json::object();
    for (const auto& [key, option] : step.items()) {
      if (key != "function") options[key] = option;
    }
    one.options = value_of(options);
  }
  return config;
}

std::string message_of(const Json& steps, const Json& answers) {
  try {
    AnswerFilter(config_of(steps)).apply({value_of(answers)}, {Value()});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AnswerFilter, GivesWhatTheHarnessGives) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Json cases = read_json((folder / "testdata/metrics/filters.json").string());
  ASSERT_GE(cases.size(), 100U);
  int filtered = 0;
  for (const Json& one : cases) {
    const Result<Json> result = try_run([&] {
      Json all = Json::array();
      for (const Value& value :
           AnswerFilter(config_of(one.at("steps")))
               .apply(values_of(one.at("answers")), values_of(one.at("documents")))) {
        all.push_back(json_of(value));
      }
      return all;
    });
    if (one.contains("error")) {
      EXPECT_FALSE(result.ok()) << one;
      continue;
    }
    ASSERT_TRUE(result.ok()) << one << "\n" << result.error().what();
    EXPECT_EQ(Result<Json>(result).value(), one.at("filtered")) << one;
    ++filtered;
  }
  EXPECT_GT(filtered, 50);
}

TEST(AnswerFilter, TakesTheFirstAnswerByDefault) {
  const auto taken =
      AnswerFilter::take_first().apply({value_of(Json::array({"a", "b"}))}, {Value()});
  EXPECT_EQ(json_of(taken.at(0)), "a");
}

TEST(AnswerFilter, NamesTheFilterTheStepAndTheExpression) {
  const auto step = [](const char* function) { return Json{{"function", function}}; };
  for (const char* const name : {"decontaminate", "format_span", "arg_max"}) {
    EXPECT_NE(message_of(Json::array({step(name)}), Json::array({"a"}))
                  .find(fmt::format("filter made: step 1, {}, is not supported", name)),
              std::string::npos)
        << message_of(Json::array({step(name)}), Json::array({"a"}));
  }
  Json regex = step("regex");
  regex["regex_pattern"] = "(a+)+$";
  EXPECT_EQ(message_of(Json::array({step("lowercase"), regex}),
                       Json::array({std::string(50, 'A') + "b"})),
            "filter made: step 2, regex: document 0: the expression `(a+)+$` needs more than "
            "10,000,000 steps from one place for a text: write it so that fewer repeats nest");
  regex["regex_pattern"] = "(";
  EXPECT_EQ(message_of(Json::array({regex}), Json::array({"a"}))
                .find("filter made: step 1, regex, the expression `(`"),
            0U)
      << message_of(Json::array({regex}), Json::array({"a"}));
  regex["regex_pattern"] = "a";
  regex["group_select"] = 3;
  EXPECT_EQ(message_of(Json::array({regex}), Json::array({"a"})),
            "filter made: step 1, regex: document 0: group_select is 3, and the expression matches "
            "1 times");
  regex["other"] = 1;
  EXPECT_NE(message_of(Json::array({regex}), Json::array({"a"}))
                .find("the option other is not supported"),
            std::string::npos);
}

}  // namespace
}  // namespace skein
