#include "skein/launch/jobs/yaml_text.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(YamlText, WritesBlocks) {
  const OrderedJson value = {{"name", "a-b"},
                             {"list", {1, "two", {{"three", 3}, {"four", OrderedJson::array()}}}},
                             {"none", OrderedJson::object()}};
  EXPECT_EQ(yaml_text(value),
            "name: a-b\nlist:\n  - 1\n  - two\n  - three: 3\n    four: []\nnone: {}\n");
}

TEST(YamlText, QuotesWhatAReaderWouldTakeForSomethingElse) {
  for (const char* text : {"true", "No", "ON", "null", "1.5", "2026-01-01", "", "a: b", "- a",
                           "a#b", " a", "8Gi", "\"", "a\nb", "\n", "\x01", "~", "*a", "é"}) {
    const std::string said = yaml_text(OrderedJson(text));
    EXPECT_EQ(said.front(), '"') << said;
    EXPECT_EQ(OrderedJson::parse(said), text);
  }
  for (const char* text : {"a", "metadata.name", "/data/run", "app.kubernetes.io/name", "Never"}) {
    EXPECT_EQ(yaml_text(OrderedJson(text)), std::string(text) + "\n");
  }
}

TEST(YamlText, ACharacterBeyondThe16BitOnesIsOneEscape) {
  EXPECT_EQ(yaml_text(OrderedJson("run \U0001F600 \U0010FFFF é")),
            "\"run \\U0001f600 \\U0010ffff \\u00e9\"\n");
  // What only looks like one stays.
  EXPECT_EQ(yaml_text(OrderedJson("\\ud83d\\ude00")), "\"\\\\ud83d\\\\ude00\"\n");
}

TEST(YamlText, TextsOfSeveralLinesStandAsTheyAre) {
  const OrderedJson file = {{"files", {{"config.toml", "[run]\n\n  seed = 1\n"}}}};
  EXPECT_EQ(yaml_text(file), "files:\n  config.toml: |\n    [run]\n\n      seed = 1\n");
  // What a block would not give back byte for byte is quoted.
  for (const char* text : {"a\nb", " a\nb\n", "a\n\n", "\na\n", "a\tb\nc\n", "a\r\nb\n"}) {
    const std::string said = yaml_text({{"key", text}});
    EXPECT_EQ(OrderedJson::parse(said.substr(said.find('"'))), text);
  }
}

}  // namespace
}  // namespace skein
