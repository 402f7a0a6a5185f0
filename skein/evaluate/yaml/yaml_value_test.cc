// testdata/tasks/yaml_cases.json is made by scripts/goldens/evaluation_tasks.py: PyYAML's answers.
#include "skein/evaluate/yaml/yaml_value.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// repr(), with functions as <function name>.
std::string shown(const Value& value) {
  std::string text;
  const auto separate = [&](bool is_first) { text += is_first ? "" : ", "; };
  if (value.is(Kind::kCallable)) return "<function " + value.as_callable().name + ">";
  if (value.is(Kind::kDict)) {
    for (const auto& [key, one] : value.as_dict().entries) {
      separate(text.empty());
      text += shown(key) + ": " + shown(one);
    }
    return "{" + text + "}";
  }
  if (value.is(Kind::kSequence)) {
    for (const Value& one : value.as_sequence().items) {
      separate(text.empty());
      text += shown(one);
    }
    return "[" + text + "]";
  }
  jinja::Budget budget({});
  return jinja::represented(value, budget);
}

std::string message_of(std::string_view text, const YamlLimits& limits = {}) {
  try {
    return "no error: " + shown(yaml_value(text, "x.yaml", limits));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(YamlValue, IsThatOfPyYaml) {
  const Json cases = read_json((std::filesystem::path(__FILE__).parent_path().parent_path() /
                                "testdata/tasks/yaml_cases.json")
                                   .string());
  ASSERT_GT(cases.size(), 350U);
  for (const Json& one : cases) {
    const std::string text = one.at("text");
    std::string answer;
    try {
      answer = shown(yaml_value(text, "x.yaml"));
    } catch (const Error&) {
      answer = "refused";
    }
    const Json& value = one.at("value");
    EXPECT_EQ(answer, value.is_null() ? "refused" : value.get<std::string>()) << text;
  }
}

TEST(YamlValue, ErrorsNameFileLineAndColumn) {
  EXPECT_EQ(message_of("a: 1\nb: [1\n").substr(0, 15), "x.yaml: line 3,");
  EXPECT_EQ(message_of("a: 1\nbc: !other x\n"),
            "x.yaml: line 2, column 5: the tag !other is not supported; expected !function, !!str, "
            "!!int, !!float, !!bool or !!null");
  EXPECT_EQ(message_of("a: 1\nb: \x01"),
            "x.yaml: line 2: control characters are not allowed (byte 9); expected UTF-8 text");
  EXPECT_EQ(message_of("a: \xff"),
            "x.yaml: line 1: invalid leading UTF-8 octet (byte 4); expected UTF-8 text");
  EXPECT_EQ(message_of("a: é: b"),
            "x.yaml: line 1, column 5: not YAML: mapping values are not "
            "allowed in this context");
  EXPECT_EQ(message_of("{{a}}: 1"),
            "x.yaml: line 1, column 2: a dict as a key; expected text, a number, a bool or null. "
            "Text that begins with { or [ needs quotes");
}

TEST(YamlValue, FunctionsKeepTheirNameAndAreNotCalled) {
  const Value value = yaml_value("a: !function utils.f", "folder/x.yaml");
  const jinja::Callable& function = value.as_dict().find("a")->as_callable();
  EXPECT_EQ(function.name, "utils.f");
  EXPECT_EQ(dynamic_cast<const YamlFunction&>(function).file, "folder/x.yaml");
  EXPECT_THROW(function.call({}), jinja::Refusal);
}

TEST(YamlValue, HasLimits) {
  YamlLimits limits;
  limits.max_bytes = 10;
  EXPECT_EQ(message_of("a: 12345678", limits), "x.yaml: 11 bytes of YAML; at most 10 are read");
  EXPECT_EQ(message_of("a: 1234567", limits).substr(0, 8), "no error");
  limits = {};
  limits.max_depth = 3;
  EXPECT_EQ(message_of("[[[1]]]", limits).substr(0, 8), "no error");
  EXPECT_EQ(message_of("[[[[1]]]]", limits),
            "x.yaml: line 1, column 4: nested deeper than 3 levels");
  EXPECT_NE(message_of(std::string(100'000, '[')).find("nested deeper"), std::string::npos);
  limits = {};
  limits.max_nodes = 4;
  EXPECT_EQ(message_of("[1, 2, 3]", limits).substr(0, 8), "no error");
  EXPECT_EQ(message_of("[1, 2, 3, 4]", limits),
            "x.yaml: line 1, column 1: more than 4 values, aliases counted in full");
}

TEST(YamlValue, CountsWhatAliasesStandFor) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string former = "*a" + std::to_string(i - 1);
    const std::string name = "a" + std::to_string(i);
    text += name + ": &" + name + " [" + former;
    for (int j = 0; j < 9; ++j) text += ", " + former;
    text += "]\n";
  }
  EXPECT_NE(message_of(text).find("aliases counted in full"), std::string::npos);
}

}  // namespace
}  // namespace skein
