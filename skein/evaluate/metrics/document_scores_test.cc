// testdata/metrics/document_scores.json is made by scripts/goldens/evaluation_metrics.py.
#include "skein/evaluate/metrics/document_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <variant>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/jinja/values/json_value.h"

namespace skein {
namespace {

jinja::Value value_of(const Json& json) { return jinja::json_value(json.dump(), "a case"); }

double number_of(const Json& json) {
  return json.is_string() ? std::strtod(json.get<std::string>().c_str(), nullptr)
                          : json.get<double>();
}

// Whether a score is what Python gave; the exponential of a softmax may differ by its last bits.
bool is_same(const Score& score, const Json& expected) {
  const auto near = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-15 * std::abs(b);
  };
  if (const auto* number = std::get_if<double>(&score)) return near(*number, number_of(expected));
  if (std::holds_alternative<NoScore>(score)) return expected.is_null();
  if (const auto* pair = std::get_if<LabelPair>(&score)) {
    return expected.at(0) == pair->gold && expected.at(1) == pair->predicted;
  }
  if (const auto* weighted = std::get_if<WeightedLoglikelihood>(&score)) {
    return weighted->loglikelihood == number_of(expected.at(0)) && weighted->weight == expected[1];
  }
  const auto& classes = std::get<ClassProbabilities>(score);
  if (classes.gold != expected.at(0) || classes.probabilities.size() != expected[1].size()) {
    return false;
  }
  for (size_t i = 0; i < classes.probabilities.size(); ++i) {
    if (!near(classes.probabilities[i], number_of(expected[1][i]))) return false;
  }
  return true;
}

std::vector<ScoredMetric> metrics_of(const Json& list, OutputType type) {
  std::vector<MetricConfig> configs;
  for (const Json& one : list) {
    MetricConfig& config = configs.emplace_back();
    config.name = one.at("metric").get<std::string>();
    Json options = Json::object();
    for (const auto& [key, option] : one.items()) {
      if (key != "metric") options[key] = option;
    }
    config.options = value_of(options);
  }
  return make_metrics(configs, type);
}

std::vector<MetricScore> scored(const Json& one, const Json& document) {
  const std::string type = one.at("type");
  const Json& results = document.value("results", Json());
  if (type == "loglikelihood") {
    return score_loglikelihood(number_of(results[0][0]), results[0][1].get<bool>(),
                               metrics_of(one.at("metrics"), OutputType::kLoglikelihood));
  }
  if (type == "loglikelihood_rolling") {
    return score_rolling(number_of(results[0]), document.at("target").get<std::string>(),
                         metrics_of(one.at("metrics"), OutputType::kRolling));
  }
  if (type == "generate_until") {
    GeneratedAnswer answer{value_of(document.at("answer")),
                           value_of(document.at("target")),
                           {},
                           one.at("several").get<bool>()};
    if (!document.at("choices").is_null()) answer.choices = value_of(document.at("choices"));
    return score_generated(answer, metrics_of(one.at("metrics"), OutputType::kGenerateUntil));
  }
  MultipleChoiceAnswer answer;
  answer.choices = document.at("choices").get<std::vector<std::string>>();
  answer.target = value_of(document.at("target"));
  answer.has_several_targets = one.at("several").get<bool>();
  for (const Json& result : results) {
    answer.loglikelihoods.push_back(number_of(result.at(0)));
    answer.is_greedy.push_back(result.at(1).get<bool>());
  }
  return score_multiple_choice(answer, metrics_of(one.at("metrics"), OutputType::kMultipleChoice))
      .scores;
}

TEST(DocumentScores, BitsPerByteAreOfTheRightChoice) {
  MultipleChoiceAnswer answer;
  answer.choices = {" a", " four"};
  answer.loglikelihoods = {-1, -10 * std::numbers::ln2};
  answer.is_greedy = {false, false};
  answer.target = jinja::Value::integer(1);
  const auto scores =
      score_multiple_choice(answer, metrics_of(Json::parse(R"([{"metric": "gold_bits_per_byte"}])"),
                                               OutputType::kMultipleChoice))
          .scores;
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_DOUBLE_EQ(std::get<double>(scores[0].score), 2.0);
}

TEST(DocumentScores, AreThoseOfTheHarness) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Json cases = read_json((folder / "testdata/metrics/document_scores.json").string());
  ASSERT_GE(cases.size(), 60U);
  int documents = 0;
  for (const Json& one : cases) {
    for (const Json& document : one.at("documents")) {
      const Result<std::vector<MetricScore>> result =
          try_run([&] { return scored(one, document); });
      if (document.contains("error")) {
        EXPECT_FALSE(result.ok()) << one.at("metrics") << document;
        continue;
      }
      ASSERT_TRUE(result.ok()) << one.at("metrics") << document << result.error().what();
      const Json& expected = document.at("scores");
      const std::vector<MetricScore> scores = Result<std::vector<MetricScore>>(result).value();
      EXPECT_EQ(scores.size(), expected.size()) << one.at("metrics") << document;
      for (const MetricScore& score : scores) {
        ASSERT_TRUE(expected.contains(score.metric)) << score.metric;
        EXPECT_TRUE(is_same(score.score, expected.at(score.metric)))
            << score.metric << " of " << one.at("metrics") << document;
      }
      ++documents;
    }
  }
  EXPECT_GT(documents, 200);
}

std::string message_of(MetricConfig config, OutputType type) {
  try {
    make_metric(config, type);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DocumentScores, RefuseMetricsByName) {
  for (const char* const name : {"bleu", "chrf", "chrf++", "ter", "code_eval", "acc", "rouge"}) {
    MetricConfig config;
    config.name = name;
    EXPECT_EQ(message_of(config, OutputType::kGenerateUntil),
              fmt::format("the metric {} of generate_until is not supported: expected one of "
                          "exact_match, bypass",
                          name));
  }
  MetricConfig config;
  config.name = "exact_match";
  config.options = value_of(Json::object({{"ignore_cases", true}}));
  EXPECT_NE(message_of(config, OutputType::kGenerateUntil).find("option ignore_cases"),
            std::string::npos);
  config.options = {};
  config.hf_evaluate = true;
  EXPECT_NE(message_of(config, OutputType::kGenerateUntil).find("hf_evaluate"), std::string::npos);
  config.hf_evaluate = false;
  config.aggregation = "bleu";
  EXPECT_NE(message_of(config, OutputType::kGenerateUntil).find("aggregation bleu"),
            std::string::npos);
}

TEST(DocumentScores, NoteATargetThatIsNoChoice) {
  MultipleChoiceAnswer answer{{-1.0, -2.0}, {true, false}, {"a", "b"}, jinja::Value::integer(2)};
  const std::vector<ScoredMetric> metrics = make_metrics({}, OutputType::kMultipleChoice);
  const MultipleChoiceScores scores = score_multiple_choice(answer, metrics);
  EXPECT_FALSE(scores.is_target_a_choice);
  EXPECT_EQ(std::get<double>(scores.scores.at(0).score), 0.0);
  answer.target = jinja::Value::number(0.0);
  EXPECT_THROW(score_multiple_choice(answer, metrics), Error);
  answer.target = jinja::Value::integer(0);
  answer.loglikelihoods.push_back(0);
  EXPECT_THROW(score_multiple_choice(answer, metrics), Error);
}

}  // namespace
}  // namespace skein
