#include "skein/prepare/read/json_document.h"

#include <arrow/util/utf8.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "skein/base/error.h"
#include "skein/prepare/read/bytes/utf8_policy.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using testing::HasSubstr;

// The text, or the error.
std::string parsed(JsonDocumentParser& parser, const std::string& object) {
  std::string text;
  const std::string error =
      test::error_of([&] { text = parser.parse(object, [] { return std::string("here"); }); });
  return error.empty() ? "= " + text : error;
}

// nlohmann::json's own answer.
std::string judged(const std::string& object) {
  const auto json = nlohmann::json::parse(object, nullptr, false);
  if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) return "";
  return "= " + json["text"].get<std::string>();
}

void expect_as_judged(JsonDocumentParser& parser, const std::string& object) {
  const std::string wanted = judged(object);
  if (wanted.empty()) {
    EXPECT_THAT(parsed(parser, object), HasSubstr("here: ")) << object;
  } else {
    EXPECT_EQ(parsed(parser, object), wanted) << object;
  }
}

TEST(JsonDocument, IsWhatNlohmannReads) {
  JsonDocumentParser parser({"text"}, {});
  for (const char* object : {R"({"text": "a"})",
                             R"({"text": "a", "text": "b"})",
                             R"({"text": "a", "text": 5})",
                             R"({"text": 5, "text": "a"})",
                             R"({"te\u0078t": "a"})",
                             R"({"a": {"text": "no"}})",
                             R"({"text": "a", "n": 123456789012345678901234567890})",
                             R"({"text": "a", "n": -0, "m": 1.5E-3})",
                             R"({"text": "a", "n": 01})",
                             R"({"text": "a", "n": tru})",
                             R"({"text": "a",})",
                             R"({"text": "a"} x)",
                             R"({"text": "a"}{})",
                             R"(["text"])",
                             R"("text")",
                             R"(7)",
                             R"({})",
                             "",
                             " ",
                             "{",
                             R"({"text": "\q"})",
                             R"({"text": "\u12"})",
                             "{\"text\": \"a\tb\"}",
                             "{\"text\": \"a\x01\"}",
                             "{\"text\": \"\xff\"}",
                             "{\"x\": \"\xc0\x80\", \"text\": \"a\"}",
                             "\xef\xbb\xbf{\"text\": \"a\"}",
                             "{\"text\": \"\xed\xa0\x80\"}",
                             "{\"text\": \"\xf4\x90\x80\x80\"}"}) {
    expect_as_judged(parser, object);
  }
  expect_as_judged(
      parser, R"({"text": "a", "deep": )" + std::string(5000, '[') + std::string(5000, ']') + "}");
  const std::string large = R"({"text": ")" + std::string(9 << 20, 'x') + "\"}";
  expect_as_judged(parser, large);
}

// As Python's json and pandas write them, where nobody reads them.
TEST(JsonDocument, NumbersOfPythonAndNullsPass) {
  JsonDocumentParser parser({"text"}, {});
  EXPECT_EQ(parsed(parser, R"({"n": NaN, "text": "a", "m": [-Infinity, Infinity]})"), "= a");
  EXPECT_EQ(parsed(parser, R"({"text": null})"), "= ");
  EXPECT_EQ(parsed(parser, R"({"text": null, "text": "a"})"), "= a");
  EXPECT_THAT(parsed(parser, R"({"n": Nan, "text": "a"})"), HasSubstr("not JSON"));
  EXPECT_THAT(parsed(parser, R"({"n": -NaN, "text": "a"})"), HasSubstr("not JSON"));
  EXPECT_THAT(parsed(parser, R"({"text": NaN})"), HasSubstr("here: "));
}

// What nobody reads stops nothing, whichever of the two parsers reads the object: the second one
// reads those whose text is a null. Python's json takes all of them.
TEST(JsonDocument, WhatIsNotReadStopsNothing) {
  const std::string deep = std::string(5000, '[') + "NaN" + std::string(5000, ']');
  const std::string values[] = {"1e99999",
                                "-1E+400",
                                "1e-99999",
                                "NaN",
                                "-Infinity",
                                std::string(5000, '9'),
                                std::string(400, '9') + ".5",
                                R"("\ud83d")",
                                R"({"\udc80": [1e999, {"x": Infinity}]})",
                                deep};
  for (const std::string& value : values) {
    JsonDocumentParser parser({"text"}, {});
    EXPECT_EQ(parsed(parser, R"({"n": )" + value + R"(, "text": "a"})"), "= a") << value;
    EXPECT_EQ(parsed(parser, R"({"text": null, "n": )" + value + "}"), "= ") << value;
    JsonDocumentParser inside({"data.text"}, {});
    EXPECT_EQ(parsed(inside, R"({"data": {"n": )" + value + R"(, "text": "a"}})"), "= a") << value;
    EXPECT_THAT(parsed(parser, R"({"n": )" + value + R"(, "body": "a"})"),
                HasSubstr("has no key `text`"))
        << value;
  }
  JsonDocumentParser parser({"text"}, {});
  EXPECT_THAT(parsed(parser, R"({"n": 1e99999, "text": "\ud83d"})"), HasSubstr("half of a char"));
  for (const char* value : {"01", "1.", "-NaN", "1e", "+1", ".5", "nan", "-", "0x1"}) {
    EXPECT_THAT(parsed(parser, fmt::format(R"({{"n": {}, "text": "a"}})", value)),
                HasSubstr("not JSON"))
        << value;
  }
}

// As Python writes strings that it decoded with surrogateescape.
TEST(JsonDocument, HalvesOfSurrogatePairsAreMendedOnRequest) {
  JsonDocumentParser parser({"text"}, {}, true);
  for (const auto& [escaped, wanted] : {std::pair(R"(\ud83d x)", "\uFFFD x"),
                                        {R"(\udc80\udc81)", "\uFFFD\uFFFD"},
                                        {R"(\ud83d\ud83d\ude00)", "\uFFFD\U0001F600"},
                                        {R"(\ud83d\n)", "\uFFFD\n"}}) {
    EXPECT_EQ(parsed(parser, fmt::format(R"({{"text": "{}"}})", escaped)),
              fmt::format("= {}", wanted));
    EXPECT_TRUE(parser.is_mended());
  }
  EXPECT_EQ(parsed(parser, R"({"text": "\ud83d\ude00"})"), "= \U0001F600");
  EXPECT_FALSE(parser.is_mended());
  EXPECT_THAT(parsed(parser, R"({"text": "\ud83"})"), HasSubstr("here: "));
}

TEST(JsonDocument, TheKeyIsTheFirstNameThatTheFirstObjectHas) {
  std::vector<std::string> chosen;
  JsonDocumentParser parser({"text", "content", "raw"},
                            [&](const std::string& key) { chosen.push_back(key); });
  EXPECT_THAT(parsed(parser, R"({"body": {"text": "a"}})"), HasSubstr("has no key `text`"));
  EXPECT_THAT(parsed(parser, R"({"content": "a")"), HasSubstr("not JSON"));
  EXPECT_EQ(parsed(parser, R"({"raw": "a", "content": "b", "n": 123456789012345678901234567890})"),
            "= b");
  EXPECT_EQ(parsed(parser, R"({"raw": "a", "text": "b", "content": "c"})"), "= c");
  EXPECT_THAT(parsed(parser, R"({"text": "a"})"), HasSubstr("has no key `content`"));
  EXPECT_EQ(chosen, std::vector<std::string>{"content"});
}

// All that \u may be followed by, and pairs of the edges of all ranges.
TEST(JsonDocument, EscapesAreWhatNlohmannReads) {
  JsonDocumentParser parser({"text"}, {});
  for (int code = 0; code < 0x10000; ++code) {
    expect_as_judged(parser, fmt::format(R"({{"text": "\u{:04x}"}})", code));
  }
  const int edges[] = {0,      1,      0x7f,   0x80,   0xd7ff, 0xd800, 0xd801,
                       0xdbff, 0xdc00, 0xdc01, 0xdfff, 0xe000, 0xffff};
  for (const int first : edges) {
    for (const int second : edges) {
      for (const char* between : {"", "x", "\\", "\\n"}) {
        expect_as_judged(
            parser, fmt::format(R"({{"text": "\u{:04X}{}\u{:04x}"}})", first, between, second));
      }
    }
  }
}

// Every pair of bytes at every place of a block, and what replacing it would change.
TEST(Utf8, IsWhatArrowTakesForIt) {
  arrow::util::InitializeUTF8();
  const auto expect_as_arrow = [](const std::string& text) {
    ASSERT_EQ(is_utf8(text), arrow::util::ValidateUTF8(text)) << testing::PrintToString(text);
    ASSERT_EQ(is_utf8(text), replace_invalid_utf8(text) == text);
  };
  for (int first = 0x80; first < 0x100; ++first) {
    for (int second = 0; second < 0x100; ++second) {
      const std::string pair{static_cast<char>(first), static_cast<char>(second)};
      for (const char* behind : {"", "a", "\x80", "\xbf", "\x80\x80", "\x80\xbf\x80"}) {
        expect_as_arrow(pair + behind);
        expect_as_arrow(std::string(62, 'x') + pair + behind);
      }
    }
  }
  for (size_t before = 0; before < 90; ++before) {
    for (const std::string text :
         {"ä", "€", "😀", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x9f\xbf"}) {
      for (size_t size = 1; size <= text.size(); ++size) {
        for (const size_t behind : {0, 1, 15, 70}) {
          expect_as_arrow(std::string(before, 'x') + text.substr(0, size) +
                          std::string(behind, 'y'));
        }
      }
    }
  }
}

// Python: bytes.decode("utf-8", "replace").
TEST(Utf8, ReplacesWhatPythonReplaces) {
  const std::pair<std::string, std::string> cases[] = {
      {"caf\xe9 x", "caf\uFFFD x"},
      {"\xff\xfe", "\uFFFD\uFFFD"},
      {"\xe2\x82", "\uFFFD"},
      {"\xe2\x82x", "\uFFFDx"},
      {"\xf0\x9f\x98", "\uFFFD"},
      {"\xf0\x9f\x98\x80", "\U0001F600"},
      {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xc0\xaf", "\uFFFD\uFFFD"},
      {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xc3\xa4\xc3", "ä\uFFFD"},
      {"", ""}};
  for (const auto& [bytes, wanted] : cases) {
    EXPECT_EQ(replace_invalid_utf8(bytes), wanted);
    check_utf8(replace_invalid_utf8(bytes), "here");
  }
}

}  // namespace
}  // namespace skein
