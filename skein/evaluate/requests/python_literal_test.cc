// testdata/requests/literals.txt is made by scripts/goldens/evaluation_requests.py.
#include "skein/evaluate/requests/python_literal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "skein/base/error.h"
#include "skein/jinja/values/json_value.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Value;

std::string outcome(const std::string& source) {
  try {
    jinja::Budget budget{jinja::Limits{}};
    return represented(python_literal(source, "text"), budget);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kInvalid ? "invalid" : "unsupported";
  }
}

TEST(PythonLiteral, IsWhatPythonReads) {
  const auto path = std::filesystem::path(__FILE__).parent_path().parent_path() /
                    "testdata/requests/literals.txt";
  std::ifstream file(path);
  ASSERT_TRUE(file.is_open());
  int num_values = 0;
  int num_cases = 0;
  for (std::string line; std::getline(file, line); ++num_cases) {
    const Value root = jinja::json_value(line, "case");
    const jinja::Dict& golden = root.as_dict();
    const std::string& source = golden.find("source")->text();
    const Value* const text = golden.find("repr");
    num_values += text != nullptr ? 1 : 0;
    EXPECT_EQ(outcome(source), (text != nullptr ? text : golden.find("error"))->text()) << source;
  }
  EXPECT_GT(num_cases, 500);
  EXPECT_GT(num_values, 150);
}

TEST(PythonLiteral, SaysWhereAndWhat) {
  const auto error_of = [](const std::string& source) {
    try {
      python_literal(source, "doc_to_choice");
      return std::string("read");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(error_of("['a', b]"),
            "doc_to_choice: character 7: the name b is no literal; expected a literal of Python, "
            "found: ['a', b]");
  EXPECT_EQ(error_of("['a' 1]"),
            "doc_to_choice: character 6: '1' is not expected here; expected a literal of Python, "
            "found: ['a' 1]");
  EXPECT_EQ(error_of("{1, 2}"),
            "doc_to_choice: character 3: a set, which has no order; expected a literal of Python, "
            "found: {1, 2}");
}

}  // namespace
}  // namespace skein
