#include "skein/jinja/template.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/jinja/values/json_value.h"
#include "tests/places.h"

namespace skein::jinja {
namespace {

std::string rendered(const std::string& source, const std::string& variables = "{}",
                     const RenderOptions& options = {}) {
  return Template(source, "t").render(json_value(variables, "variables"), options).text;
}

std::string error_of(const std::string& source, const std::string& variables = "{}",
                     const Limits& limits = {}) {
  RenderOptions options;
  options.limits = limits;
  try {
    return "rendered: " + rendered(source, variables, options);
  } catch (const Error& error) {
    return error.what();
  }
}

// Cases that scripts/goldens/jinja.py made, or those of SKEIN_JINJA_CASES
// (scripts/judge/jinja_templates.py).
TEST(JinjaGoldens, RendersAsTheFileSays) {
  const char* const named = std::getenv("SKEIN_JINJA_CASES");
  std::ifstream file(named != nullptr
                         ? std::string(named)
                         : std::string(kSourceFolder) + "/skein/jinja/testdata/cases.txt");
  ASSERT_TRUE(file.is_open());
  int num_cases = 0;
  int num_refused = 0;
  for (std::string line; std::getline(file, line); ++num_cases) {
    const Json golden = Json::parse(line);
    const Json& expected = golden["expected"];
    const auto source = golden["template"].get<std::string>();
    try {
      // The variables' own text: their order counts.
      const Value root = json_value(line, "case");
      const Rendered made = Template(source, "t").render(*root.as_dict().find("variables"), {});
      Json spans = Json::array();
      for (const Span& span : made.generations) spans.push_back({span.begin, span.end});
      ASSERT_TRUE(expected.contains("text"))
          << source << "\nrendered " << made.text << "\nwanted " << expected["error"];
      EXPECT_EQ(made.text, expected["text"].get<std::string>()) << source;
      EXPECT_EQ(spans, expected["generations"]) << source;
    } catch (const Error& error) {
      num_refused += expected.contains("text") ? 1 : 0;
      if (!expected.contains("text")) continue;
      if (named == nullptr) {
        ADD_FAILURE() << source << "\n" << error.what();
      } else {
        fmt::print("refused, though it renders: {}\n  {}\n", source, error.what());
      }
    }
  }
  EXPECT_GT(num_cases, 0);
  if (named != nullptr) fmt::print("{} cases, {} refused that render\n", num_cases, num_refused);
}

TEST(Jinja, SaysWhereAndWhat) {
  EXPECT_EQ(error_of("a\n  {{ x.y }}"), "t:2:7: 'x' is undefined");
  EXPECT_EQ(error_of("{{ m.a.b }}", R"({"m": {}})"), "t:1:7: 'dict object' has no attribute 'a'");
  EXPECT_EQ(error_of("{% for x in y %}"), "t:1:17: the template ends, and {% endfor %} is missing");
  EXPECT_EQ(error_of("{{ 'ü' + 1 }}"), "t:1:4: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(error_of("{{ a | nosuch }}"), "t:1:8: there is no filter 'nosuch'");
  EXPECT_EQ(error_of("{{ raise_exception('roles must alternate') }}"),
            "t:1:19: the template refuses this: roles must alternate");
}

// Before anything is rendered: Template's constructor.
TEST(Jinja, RefusesByNameWhatItHasNot) {
  const auto refusal = [](const std::string& source) {
    try {
      const Template made(source, "t");
      return std::string("taken");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal("x{% include 'a' %}"),
            "t:1:5: the tag 'include' is not supported in a template");
  EXPECT_EQ(refusal("{{ a|urlize }}"), "t:1:6: the filter 'urlize' is not supported");
  EXPECT_EQ(refusal("{{ a is nosuch }}"), "t:1:9: there is no test 'nosuch'");
  EXPECT_EQ(refusal("{% for a in b recursive %}{% endfor %}"),
            "t:1:15: a recursive loop is not supported: use a macro that calls itself");
  EXPECT_EQ(
      refusal("{% set a %}{% generation %}x{% endgeneration %}{% endset %}"),
      "t:1:15: generation inside 'set' is not supported: its place in the output is not known "
      "there");
}

TEST(Jinja, HostileTemplatesEndWithAnError) {
  const Limits small{100'000, 1 << 30, 1 << 16, 300};
  const auto has = [&](const std::string& source, const std::string& part) {
    EXPECT_NE(error_of(source, "{}", small).find(part), std::string::npos)
        << source.substr(0, 80) << "\n"
        << error_of(source, "{}", small).substr(0, 200);
  };
  has("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", "steps");
  has("{{ 'a' * 10000000000 }}", "bytes of values");
  has("{{ [0] * 10000000000 }}", "bytes of values");
  has("{% for i in range(9999) %}aaaaaaaaaaaaaaaaaaaa{% endfor %}", "writes more than");
  has("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deeper than");
  has("{% set ns = namespace(a=[]) %}{% for i in range(999) %}{% set ns.a = [ns.a] %}{% endfor %}",
      "nested deeper");
  has("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}", "deeper than");
  has("{{ " + std::string(100'000, '-') + "1 }}", "deeper than");
  has("{{ not " + std::string(50'000, ' ') + "1 }}", "rendered: False");
  std::string sum = "{{ 1";
  for (int i = 0; i < 50'000; ++i) sum += "+1";
  has(sum + " }}", "levels");
  std::string ifs;
  for (int i = 0; i < 10'000; ++i) ifs += "{% if 1 %}";
  has(ifs, "deeper than");
  has("{{ range(100001)|list }}", "at most 100000");
  has("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is defined }}",
      "rendered: True");
  has("{{ ''.__class__ }}{{ [].append(1) }}", "would change a list");
}

TEST(Jinja, TheTimeIsThatOfTheOptions) {
  RenderOptions options;
  options.now.emplace();
  options.now->tm_year = 124, options.now->tm_mon = 6, options.now->tm_mday = 26;
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}", "{}", options), "26 Jul 2024");
}

TEST(Jinja, AStrictUndefinedIsAnErrorWhereverItIsRead) {
  RenderOptions strict;
  strict.strict_undefined = true;
  const auto made = [&](const std::string& source) {
    try {
      return rendered(source, R"({"d": {"a": 1}, "l": [{"a": 1}, {}]})", strict);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const std::string why = "'x' is undefined";
  for (const char* const source :
       {"{{ x }}", "{% if x %}{% endif %}", "{{ not x }}", "{{ x == 1 }}", "{{ 1 in x }}",
        "{{ x in [1] }}", "{{ x|length }}", "{{ x|join }}", "{% for i in x %}{% endfor %}",
        "{{ x ~ 'a' }}", "{{ x or 1 }}", "{{ x is iterable }}", "{{ x|string }}", "{{ {x: 1} }}"}) {
    EXPECT_NE(made(source).find(why), std::string::npos) << source << ": " << made(source);
  }
  EXPECT_EQ(made("{{ d.b }}"), "t:1:4: 'dict object' has no attribute 'b'");
  EXPECT_EQ(made("{{ d['b'] }}"), "t:1:4: 'dict object' has no attribute 'b'");
  EXPECT_EQ(made("{{ [][0] }}"), "t:1:4: list object has no element 0");
  EXPECT_EQ(made("{{ []|first }}"), "t:1:4: No first item, sequence was empty.");
  EXPECT_EQ(made("{{ l|map(attribute='a')|join }}"), "t:1:25: 'dict object' has no attribute 'a'");
  EXPECT_EQ(made("{% macro m(p) %}{{ p }}{% endmacro %}{{ m() }}"),
            "t:1:20: parameter 'p' was not provided");
  EXPECT_EQ(made("{% for i in [1] %}{{ loop.previtem }}{% endfor %}"),
            "t:1:22: there is no previous item");
  EXPECT_EQ(made("{{ x is defined }} {{ x|default(1) }} {{ x is sequence }} {{ 'a' if false }}|"),
            "False 1 False |");
}

TEST(Jinja, AProgramMayAddFilters) {
  auto filters = std::make_shared<FilterMap>();
  (*filters)["twice"] = [](const Value& value, const Arguments& given) {
    if (!given.positional.empty()) throw Refusal("twice has no arguments");
    return Value::string(value.text() + value.text());
  };
  Syntax syntax;
  syntax.filters = filters;
  const auto made = [&](const std::string& source) {
    try {
      return Template(source, "t", syntax).render(json_value("{}", "v"), {}).text;
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(made("{{ 'a'|twice|upper }}{% filter twice %}b{% endfilter %}"), "AAbb");
  EXPECT_EQ(made("{{ 'a'|twice(1) }}"), "t:1:8: twice has no arguments");
  EXPECT_EQ(made("{{ x|twice }}"), "t:1:6: 'x' is undefined");
}

TEST(Jinja, TasksMayKeepTheLastLineBreakAndHaveNoTrimming) {
  const Syntax plain{false, false, true};
  const Template task("Q: {{ q }}\n  {% if true %}\nA\n{% endif %}\n", "t", plain);
  EXPECT_EQ(task.render(json_value(R"({"q": "x"})", "v"), {}).text, "Q: x\n  \nA\n\n");
}

TEST(JinjaJson, ReadsAsPythonDoes) {
  EXPECT_EQ(rendered("{{ v }}",
                     R"({"v": {"b": 1, "a": 1e2, "b": 12345678901234567890123, "c": 1.0E-7}})"),
            "{'b': 12345678901234567890123, 'a': 100.0, 'c': 1e-07}");
  EXPECT_EQ(rendered("{{ v|tojson }}", R"({"v": ["ü\u0000", 18446744073709551615]})"),
            "[\"ü\\u0000\", 18446744073709551615]");
  EXPECT_THROW(json_value("{\"a\": }", "x"), Error);
  // Numbers of Python's json: nan -inf inf, and an integer that no double holds.
  const std::string digits(400, '9');
  EXPECT_EQ(rendered("{{ a }} {{ b }} {{ c }} {{ d }}",
                     R"({"a": NaN, "b": -1e99999, "c": Infinity, "d": )" + digits + "}"),
            "nan -inf inf " + digits);
  EXPECT_THROW(json_value(std::string(400, '[') + std::string(400, ']'), "x"), Error);
}

}  // namespace
}  // namespace skein::jinja
