#include "skein/prepare/clean/filters/document_judge.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json.h"
#include "tests/places.h"

namespace skein {
namespace {

// As scripts/judge/clean.py asks.
const std::map<std::string, std::vector<std::string>>& questions() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"gopher_repetition", {"gopher_quality=off", "c4=off", "fineweb=off"}},
      {"gopher_quality", {"gopher_repetition=off", "c4=off", "fineweb=off"}},
      {"c4", {"gopher_repetition=off", "gopher_quality=off", "fineweb=off"}},
      {"fineweb", {"gopher_repetition=off", "gopher_quality=off", "c4=off"}},
      {"c4 with terminal punctuation",
       {"gopher_repetition=off", "gopher_quality=off", "fineweb=off", "no_terminal_punc=on"}},
      {"all", {}}};
  return all;
}

CleanRules rules_of(const std::vector<std::string>& settings) {
  CleanRules rules;
  for (const std::string& setting : settings) rules.set(setting);
  return rules;
}

std::string hash_of(std::string_view text) { return xxh3_128_hex(std::as_bytes(std::span(text))); }

// testdata/decisions.json: scripts/goldens/clean.py.
TEST(DocumentJudge, DecidesAsDatatrove) {
  const Json goldens = Json::parse(
      read_file(fs::path(kSourceFolder) / "skein/prepare/clean/testdata/decisions.json"));
  std::set<std::string> rules_seen;
  for (const auto& [question, settings] : questions()) {
    DocumentJudge judge(rules_of(settings));
    for (const Json& golden : goldens) {
      const auto text = golden["text"].get<std::string>();
      const DocumentJudge::Decision decision = judge.judge(text);
      const std::string rule = decision.rule ? info(*decision.rule).name : "";
      EXPECT_EQ(rule, golden["rules"][question].get<std::string>()) << question << ": " << text;
      rules_seen.insert(rule);
      if (rule.empty()) {
        EXPECT_EQ(hash_of(decision.text), golden["left"][question].get<std::string>()) << text;
      }
    }
  }
  // Each of them drops some document of the goldens.
  EXPECT_GT(rules_seen.size(), 28u);
}

std::optional<Rule> decide(const std::string& text, const std::vector<std::string>& settings) {
  return DocumentJudge(rules_of(settings)).judge(text).rule;
}

TEST(DocumentJudge, ThresholdsAndSwitchesAreObeyed) {
  const std::string text = "The cat sat on the mat.\nIt was black and it was of good cheer.\n";
  EXPECT_EQ(decide(text, {"gopher_repetition=off"}), Rule::kShortDoc);
  EXPECT_EQ(decide(text, {"gopher_repetition=off", "gopher_short_doc=10"}), Rule::kTooFewSentences);
  const std::vector<std::string> few = {"gopher_repetition=off", "gopher_short_doc=off",
                                        "too_few_sentences=2"};
  EXPECT_EQ(decide(text, few), std::nullopt);
  std::vector<std::string> more = few;
  more.emplace_back("short_line_ratio=0.4");
  EXPECT_EQ(decide(text, more), Rule::kShortLineRatio);
  more.emplace_back("short_line_length=20");
  EXPECT_EQ(decide(text, more), std::nullopt);
}

TEST(DocumentJudge, SaysWhichLinesItCut) {
  DocumentJudge judge(rules_of(
      {"gopher_repetition=off", "gopher_quality=off", "fineweb=off", "too_few_sentences=off"}));
  const DocumentJudge::Decision decision = judge.judge(
      "Please enable JavaScript here.\n\nShe was born[1] in May[citation needed].\nHome");
  EXPECT_EQ(decision.rule, std::nullopt);
  EXPECT_EQ(decision.text, "She was born in May.");
  ASSERT_EQ(decision.cut.size(), 3u);  // the empty line is none
  EXPECT_EQ(decision.cut[0].rule, Rule::kJavascript);
  EXPECT_EQ(decision.cut[1].rule, Rule::kCitations);
  EXPECT_EQ(decision.cut[1].num_bytes, 20);
  EXPECT_EQ(decision.cut[2].rule, Rule::kTooFewWords);
  EXPECT_EQ(decision.cut[2].text, "Home");
}

TEST(DocumentJudge, TakesTextWithoutWords) {
  const std::vector<std::string> all_but_empty = {"empty=off", "blank=off"};
  for (const char* text : {"", " ", "\n\n", "\t\r\n ", "."}) {
    EXPECT_NE(decide(text, {}), std::nullopt) << "\"" << text << "\"";
    decide(text, all_but_empty);
  }
}

TEST(CleanRules, SayWhatIsWrongWithASetting) {
  const auto error_of = [](const char* setting) -> std::string {
    try {
      CleanRules().set(setting);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of("gopher_short_dok=3").find("did you mean gopher_short_doc?"),
            std::string::npos);
  EXPECT_NE(error_of("gopher_short_doc").find("expected RULE=NUMBER"), std::string::npos);
  for (const char* setting : {"gopher_short_doc=", "gopher_short_doc=many", "list_ratio=-1",
                              "list_ratio=nan", "list_ratio=inf", "list_ratio=1x", "c4=5"}) {
    EXPECT_NE(error_of(setting), "") << setting;
  }
  CleanRules rules;
  rules.set("c4=off");
  EXPECT_FALSE(rules.is_on(Filter::kC4));
  rules.set("c4=on");
  EXPECT_TRUE(rules.is_on(Rule::kPolicy));
  EXPECT_FALSE(rules.is_on(Rule::kNoTerminalPunctuation));  // as it was
  rules.set("language=0.8");
  EXPECT_EQ(rules.threshold(Rule::kLanguage), 0.8);
  rules.set("language=off");
  EXPECT_FALSE(rules.is_on(Filter::kLanguage));
}

}  // namespace
}  // namespace skein
