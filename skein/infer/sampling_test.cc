#include "skein/infer/sampling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

std::vector<int32_t> ints(const Json& json) { return json.get<std::vector<int32_t>>(); }

SamplingOptions options_of(const Json& json) {
  return {.temperature = json.at("temperature"),
          .top_p = json.at("top_p"),
          .top_k = json.at("top_k"),
          .min_p = json.at("min_p"),
          .repetition_penalty = json.at("repetition_penalty")};
}

// Made by scripts/goldens/sampling.py: shares of the draws of many seeds are transformers'
// probabilities.
TEST(Sampling, DrawsAsTransformersDoes) {
  const Json cases =
      read_json((fs::path(__FILE__).parent_path() / "testdata/sampling.json").string());
  ASSERT_EQ(cases.size(), 60U);
  constexpr int kDraws = 4000;
  for (size_t number = 0; number < cases.size(); ++number) {
    const Json& json = cases[number];
    const auto logits = json.at("logits").get<std::vector<float>>();
    const auto wanted = json.at("probabilities").get<std::vector<double>>();
    const std::vector<int32_t> tokens = ints(json.at("tokens"));
    SamplingOptions options = options_of(json);
    std::vector<int> counts(logits.size(), 0);
    for (int draw = 0; draw < kDraws; ++draw) {
      options.seed = static_cast<uint64_t>(draw);
      std::vector<float> changed = logits;
      ++counts[static_cast<size_t>(next_token(changed, options, {tokens, std::ssize(tokens)}))];
    }
    for (size_t id = 0; id < counts.size(); ++id) {
      const double p = wanted[id];
      const double spread = 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-9;
      EXPECT_NEAR(counts[id], kDraws * p, spread) << "case " << number << ", token " << id;
    }
  }
}

// OpenAI's API: logit - bias..., of new tokens alone.
TEST(Sampling, PenalizesNewTokensAlone) {
  const std::vector<int32_t> tokens = {0, 0, 0, 1, 1, 2};  // the first three were given
  const auto taken = [&](double presence, double frequency, std::vector<float> logits) {
    SamplingOptions options;
    options.presence_penalty = presence;
    options.frequency_penalty = frequency;
    return next_token(logits, options, {tokens, 3});
  };
  EXPECT_EQ(taken(0, 0, {1, 5, 4, 0}), 1);
  EXPECT_EQ(taken(0.9, 0, {1, 5, 4.5, 0}), 1);  // each once: 4.1 against 3.6
  EXPECT_EQ(taken(0, 0.9, {1, 5, 4.5, 0}), 2);  // 3.2 against 3.6
  EXPECT_EQ(taken(2, 2, {1.5, 5, 4.5, 0}), 0);  // -1 and 0.5 against 1.5
  EXPECT_EQ(taken(-1, 0, {5.5, 5, 4, 0}), 1);   // a negative one makes likelier
}

TEST(Sampling, AddsABiasAndDrawsNoTokenThatIsExcluded) {
  SamplingOptions options;
  options.bias = {{2, 100.0F}};
  std::vector<float> logits = {3, 2, 1};
  EXPECT_EQ(next_token(logits, options, {}), 2);
  const std::vector<int32_t> never = {0, 2};
  options.never = never;
  logits = {3, 2, 1};
  EXPECT_EQ(next_token(logits, options, {}), 1);
  options.temperature = 5;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    options.seed = seed;
    logits = {3, 2, 1};
    EXPECT_EQ(next_token(logits, options, {}), 1);
  }
}

// Of a vocabulary that is sorted in parts.
TEST(Sampling, TakesEqualTokensInTheOrderOfTheirIds) {
  std::vector<float> logits(1000, 0.0F);
  const SamplingOptions options{.temperature = 1, .top_k = 300};
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(sample_token(logits, options, (static_cast<float>(i) + 0.5F) / 300), i);
  }
}

TEST(Sampling, AsksForLogitsWhereTheyMayMatter) {
  const std::vector<int32_t> never = {4};
  EXPECT_FALSE((SamplingOptions{.never = never}).needs_logits(5));
  EXPECT_TRUE((SamplingOptions{.never = never}).needs_logits(4));
  EXPECT_TRUE((SamplingOptions{.temperature = 1}).needs_logits(5));
  EXPECT_TRUE((SamplingOptions{.repetition_penalty = 1.1}).needs_logits(5));
  EXPECT_TRUE((SamplingOptions{.bias = {{1, 2.0F}}}).needs_logits(5));
  EXPECT_FALSE((SamplingOptions{.top_p = 0.5, .top_k = 3}).needs_logits(5));
}

}  // namespace
}  // namespace skein
