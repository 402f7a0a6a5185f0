// testdata/metrics/python_regex.json is made by scripts/goldens/evaluation_metrics.py.
#include "skein/evaluate/metrics/python_regex.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PythonRegex, FindsAndReplacesWhatPythonDoes) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Json cases = read_json((folder / "testdata/metrics/python_regex.json").string());
  ASSERT_GE(cases.size(), 200U);
  int matched = 0, refused = 0, unsupported = 0;
  for (const Json& one : cases) {
    const auto pattern = one.at("pattern").get<std::string>();
    const Result<bool> read = try_run([&] {
      const PythonRegex regex(pattern);
      for (size_t i = 0; i < one.at("texts").size() && one.contains("found"); ++i) {
        const auto text = one.at("texts")[i].get<std::string>();
        EXPECT_EQ(Json(regex.find_all(text)), one.at("found")[i]) << pattern << " on " << text;
        EXPECT_EQ(regex.substitute(one.at("replacement").get<std::string>(), text,
                                   one.at("count").get<int64_t>()),
                  one.at("replaced")[i].get<std::string>())
            << pattern << " on " << text << ", replaced by " << one.at("replacement");
      }
      return true;
    });
    if (one.contains("error")) {
      EXPECT_FALSE(read.ok()) << pattern << ": " << one.at("error");
      ++refused;
    } else if (!read.ok()) {
      EXPECT_EQ(read.error().code(), ErrorCode::kUnsupported) << read.error().what();
      ++unsupported;
    } else {
      ++matched;
    }
  }
  EXPECT_GT(matched, 8 * unsupported);
  EXPECT_GT(refused, 0);
}

TEST(PythonRegex, NamesAnExpressionThatNeedsTooMuch) {
  const std::string text = std::string(60, 'a') + "b";
  for (const char* const pattern : {"(a+)+$", "(a|aa)+$", "(.*)(.*)(.*)(.*)(.*)(.*)x"}) {
    const std::string message = message_of([&] { PythonRegex(pattern).find_all(text); });
    EXPECT_NE(message.find(fmt::format("the expression `{}` needs more than", pattern)),
              std::string::npos)
        << message;
  }
  EXPECT_NE(message_of([] { PythonRegex("((a{1000}){1000}){1000}"); }), "");
  EXPECT_NE(message_of([] { PythonRegex(std::string(5000, '(') + std::string(5000, ')')); }), "");
  EXPECT_NE(message_of([] { PythonRegex(std::string(70'000, 'a')); }), "");
}

TEST(PythonRegex, RefusesWhatItCannotMatchAsPythonDoes) {
  for (const char* const pattern :
       {"\\N{DIGIT ONE}", "(?ai)a", "(?:a??b?){0,2}", "a{70000}", "[\\ud800-\\udfff]"}) {
    const Result<bool> read = try_run([&] { return PythonRegex(pattern).source().empty(); });
    ASSERT_FALSE(read.ok()) << pattern;
    EXPECT_EQ(read.error().code(), ErrorCode::kUnsupported) << read.error().what();
  }
  EXPECT_EQ(message_of([] { PythonRegex("(?<=a*)b"); }),
            "the expression `(?<=a*)b` is not one of Python's: at character 7: a look-behind of "
            "more than one width");
  EXPECT_NE(message_of([] { PythonRegex("a").find_all("\xff"); }), "");
  EXPECT_NE(message_of([] { PythonRegex("\xff"); }), "");
  EXPECT_NE(message_of([] { PythonRegex("a").substitute("\\1", "a"); }), "");
  EXPECT_NE(message_of([] { PythonRegex("a").substitute("\\g<n>", "a"); }), "");
  EXPECT_NE(message_of([] { PythonRegex("a").substitute("\\q", "a"); }), "");
}

TEST(PythonRegex, EscapesAndSplits) {
  EXPECT_EQ(escape_python_regex("a.b c-é#"), "a\\.b\\ c\\-é\\#");
  EXPECT_EQ(count_split_words(""), 1);
  EXPECT_EQ(count_split_words(" a\u2003\n b "), 4);
}

}  // namespace
}  // namespace skein
