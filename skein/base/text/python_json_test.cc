#include "skein/base/text/python_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace skein {
namespace {

std::string plain(std::string_view text) { return plain_json(text).text; }

TEST(PythonJson, NumbersOfPythonAreNumbers) {
  EXPECT_EQ(plain("[NaN, Infinity,-Infinity]"), "[0E0, 0E1     ,-0E1     ]");
  EXPECT_EQ(plain("{\"n\":1e99999}"), "{\"n\":0E1    }");
  EXPECT_EQ(plain("-1.5E+400"), "-0E1     ");
  const std::string digits = "-" + std::string(400, '9');
  const PlainJson whole = plain_json("[" + digits + ", 5]");
  EXPECT_EQ(whole.text, "[0E2" + std::string(398, ' ') + ", 5]");
  EXPECT_EQ(whole.integers, std::vector<std::string>{digits});
  EXPECT_EQ(plain(std::string(310, '9') + ".5"), "0E1" + std::string(309, ' '));
}

TEST(PythonJson, AllElseIsLeftAsItIs) {
  for (const char* text : {"",
                           "{\"text\": \"NaN 1e999 \\\" -Infinity\"}",
                           "1e-99999",
                           "0.1e300",
                           "1e308",
                           "-0",
                           "[1e5,1.5e-3]",
                           "01",
                           "1.",
                           ".5",
                           "-NaN",
                           "+1",
                           "nan",
                           "inf",
                           "Infinity1",
                           "1e",
                           "1e+",
                           "0x10",
                           "1_0",
                           "tru",
                           "\"",
                           "\"\\",
                           "\"\\u",
                           "\"\\ud8",
                           "\"\\ud83d\"",
                           "-"}) {
    EXPECT_EQ(plain(text), text);
  }
  EXPECT_EQ(plain("0E0 0E1 1E5"), "0e0 0e1 1e5");
}

TEST(PythonJson, HalvesOfPairsAreMendedOnRequest) {
  EXPECT_EQ(plain_json(R"("\ud83d x \udc80\ud83d\ude00 \\ud83d")", true).text,
            R"("\ufffd x \ufffd\ud83d\ude00 \\ud83d")");
}

// What it makes is read, and places stay.
TEST(PythonJson, IsReadByTheParser) {
  const std::string text =
      R"({"a": [1e999, NaN], "b": -Infinity, "c": )" + std::string(5000, '7') + R"(, "text": "x"})";
  const PlainJson made = plain_json(text);
  EXPECT_EQ(made.text.size(), text.size());
  EXPECT_EQ(nlohmann::json::parse(made.text).at("text"), "x");
}

}  // namespace
}  // namespace skein
