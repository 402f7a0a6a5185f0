// testdata/metrics/aggregate.json and groups.json are made by
// scripts/goldens/evaluation_metrics.py.
#include "skein/evaluate/metrics/aggregate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

Json cases_of(const char* name) {
  const std::filesystem::path folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  return read_json((folder / "testdata/metrics" / name).string());
}

double number_of(const Json& json) {
  return json.is_string() ? std::strtod(json.get<std::string>().c_str(), nullptr)
                          : json.get<double>();
}

Score score_of(const Json& json, const std::string& aggregation) {
  if (!json.is_array()) return number_of(json);
  if (json[1].is_array()) {
    return ClassProbabilities{json[0].get<int64_t>(), json[1].get<std::vector<double>>()};
  }
  if (aggregation == "f1" || aggregation == "matthews_corrcoef") {
    return LabelPair{json[0].get<int64_t>(), json[1].get<int64_t>()};
  }
  return WeightedLoglikelihood{json[0].get<double>(), json[1].get<int64_t>()};
}

// Numbers as recorded; another C library may give an exponential's or a square's last bit
// otherwise. Counts those that are not the same double.
void expect_number(double got, const Json& expected, const std::string& what, int& inexact) {
  const double number = number_of(expected);
  if (got == number || (std::isnan(got) && std::isnan(number))) return;
  ++inexact;
  EXPECT_NEAR(got, number, 2e-15 * std::abs(number)) << what;
}

TEST(Aggregate, IsThatOfTheHarness) {
  const Json cases = cases_of("aggregate.json");
  ASSERT_GE(cases.size(), 60U);
  int inexact = 0, with_error = 0;
  for (const Json& one : cases) {
    const auto aggregation = one.at("aggregation").get<std::string>();
    std::vector<Score> scores;
    for (const Json& score : one.at("scores")) scores.push_back(score_of(score, aggregation));
    const std::string what = one.dump().substr(0, 300);
    const Result<Aggregate> result =
        try_run([&] { return aggregate_scores("m", aggregation, scores, one.at("rounds"), 2); });
    if (one.contains("error")) {
      EXPECT_FALSE(result.ok()) << what;
      continue;
    }
    ASSERT_TRUE(result.ok()) << what << result.error().what();
    const Aggregate got = Result<Aggregate>(result).value();
    expect_number(got.value, one.at("value"), what, inexact);
    ASSERT_EQ(got.standard_error.has_value(), !one.at("standard_error").is_null()) << what;
    if (!got.standard_error) continue;
    ++with_error;
    expect_number(*got.standard_error, one.at("standard_error"), "error of " + what, inexact);
  }
  EXPECT_GT(with_error, 20);
  RecordProperty("numbers_that_differ_in_their_last_bits", inexact);
  if (inexact > 0) printf("%d numbers differ in their last bits\n", inexact);
}

TEST(Aggregate, OfGroupsIsThatOfTheHarness) {
  int inexact = 0;
  for (const Json& one : cases_of("groups.json")) {
    std::vector<TaskScore> tasks;
    for (const Json& task : one.at("tasks"))
      tasks.push_back({task[0], task[1].get<double>(), task[2]});
    for (const bool is_weighted : {true, false}) {
      const Json& expected = one.at(is_weighted ? "weighted" : "unweighted");
      const Aggregate got = aggregate_group(tasks, is_weighted);
      expect_number(got.value, expected[0], one.dump(), inexact);
      expect_number(got.standard_error.value(), expected[1], one.dump(), inexact);
    }
    tasks.back().standard_error.reset();
    EXPECT_FALSE(aggregate_group(tasks, true).standard_error.has_value());
    EXPECT_FALSE(aggregate_group(tasks, false).standard_error.has_value());
  }
  if (inexact > 0) printf("%d numbers differ in their last bits\n", inexact);
}

TEST(Aggregate, IsTheSameForAnyNumberOfThreads) {
  std::vector<Score> scores;
  for (int i = 0; i < 40; ++i) scores.emplace_back(-0.1 * i * i);
  const auto error = [&](int threads) {
    return aggregate_scores("perplexity", "perplexity", scores, 5000, threads).standard_error;
  };
  EXPECT_EQ(error(1), error(3));
}

TEST(Aggregate, RefusesWhatHasNone) {
  const std::vector<Score> numbers = {1.0, 0.0}, pairs = {LabelPair{0, 2}, LabelPair{1, 1}};
  EXPECT_THROW(aggregate_scores("m", "bleu", numbers, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "f1", numbers, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "f1", pairs, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "mean", pairs, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "mean", {}, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "median", {std::nan(""), 1.0}, 0, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "median", numbers, int64_t{1} << 40, 1), Error);
  EXPECT_THROW(aggregate_scores("m", "weighted_perplexity", {WeightedLoglikelihood{-1, 0}}, 0, 1),
               Error);
  EXPECT_THROW(aggregate_group({}, true), Error);
}

}  // namespace
}  // namespace skein
