#include "skein/evaluate/metrics/document_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/evaluate/metrics/numpy_sum.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr int64_t kNoChoice = -100;

// numpy.argmax.
int64_t largest(const std::vector<double>& values) {
  size_t best = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return static_cast<int64_t>(i);
    if (values[i] > values[best]) best = i;
  }
  return static_cast<int64_t>(best);
}

[[noreturn]] void refuse_target(const Value& target, const char* expected) {
  jinja::Budget budget{jinja::Limits{}};
  fail(ErrorCode::kInvalid, "the target is {}: expected {}", jinja::represented(target, budget),
       expected);
}

// One target, or several.
struct Gold {
  std::vector<int64_t> indices;
  bool is_list = false;

  bool has_none() const { return std::count(indices.begin(), indices.end(), kNoChoice) > 0; }
  bool is_hit(int64_t predicted) const {
    return std::count(indices.begin(), indices.end(), predicted) > 0;
  }
  int64_t one(const char* metric) const {
    if (!is_list) return indices[0];
    fail(ErrorCode::kUnsupported, "the metric {} of documents with several targets", metric);
  }
};

Gold gold_of(const MultipleChoiceAnswer& answer) {
  const Value& target = answer.target;
  const int64_t count = std::ssize(answer.choices);
  const auto index_of = [&](const Value& index) {
    return index.as_integer() < count ? index.as_integer() : kNoChoice;
  };
  Gold gold;
  gold.is_list = answer.has_several_targets;
  if (gold.is_list) {
    if (!target.is(Kind::kSequence)) refuse_target(target, "a list, as in the first document");
    for (const Value& item : target.as_sequence().items) {
      if (!item.is_integer()) refuse_target(target, "a list of indices of choices");
      gold.indices.push_back(index_of(item));
    }
  } else if (target.is_string()) {
    const auto found = std::find(answer.choices.begin(), answer.choices.end(), target.text());
    gold.indices = {found == answer.choices.end() ? kNoChoice : found - answer.choices.begin()};
  } else if (target.is_integer()) {
    gold.indices = {index_of(target)};
  } else {
    refuse_target(target, "the index or the text of a choice");
  }
  return gold;
}

bool is_any_greedy(const Gold& gold, const std::vector<bool>& is_greedy) {
  const int64_t count = std::ssize(is_greedy);
  for (const int64_t index : gold.indices) {
    if (index == kNoChoice) continue;
    const int64_t at = index < 0 ? index + count : index;
    if (at < 0) {
      fail(ErrorCode::kInvalid, "the target is {}, and there are {} choices", index, count);
    }
    if (is_greedy[static_cast<size_t>(at)]) return true;
  }
  return false;
}

std::vector<double> divided(const std::vector<double>& values,
                            const std::vector<std::string>& choices,
                            size_t (*length)(std::string_view)) {
  std::vector<double> result;
  for (size_t i = 0; i < values.size(); ++i) {
    result.push_back(values[i] / static_cast<double>(length(choices[i])));
  }
  return result;
}

size_t num_bytes(std::string_view text) { return text.size(); }

void check_counts(const MultipleChoiceAnswer& answer, bool has_mutual_info) {
  const size_t expected = answer.choices.size() * (has_mutual_info ? 2 : 1);
  if (answer.choices.empty()) fail(ErrorCode::kInvalid, "the document has no choices");
  if (answer.loglikelihoods.size() == expected && answer.is_greedy.size() == expected) return;
  fail(ErrorCode::kInvalid, "{} choices have {} loglikelihoods and {} greedy flags: expected {}",
       answer.choices.size(), answer.loglikelihoods.size(), answer.is_greedy.size(), expected);
}

}  // namespace

std::vector<double> softmax_of(const std::vector<double>& values) {
  std::vector<double> result;
  const double most = values[static_cast<size_t>(largest(values))];
  for (const double value : values) result.push_back(std::exp(value - most));
  const double sum = numpy_sum(result);
  for (double& value : result) value /= sum;
  return result;
}

MultipleChoiceScores score_multiple_choice(const MultipleChoiceAnswer& answer,
                                           const std::vector<ScoredMetric>& metrics) {
  const auto has = [&](std::string_view name) {
    return std::any_of(metrics.begin(), metrics.end(),
                       [&](const ScoredMetric& metric) { return metric.name == name; });
  };
  const bool has_mutual_info = has("acc_mutual_info");
  check_counts(answer, has_mutual_info);
  const auto num_choices = static_cast<ptrdiff_t>(answer.choices.size());
  const std::vector<double> values(answer.loglikelihoods.begin(),
                                   answer.loglikelihoods.begin() + num_choices);
  const Gold gold = gold_of(answer);
  const int64_t predicted = largest(values);
  const bool is_greedy = is_any_greedy(gold, answer.is_greedy);

  MultipleChoiceScores result;
  result.is_target_a_choice = !gold.has_none();
  const auto add = [&](const char* name, const std::function<Score()>& score) {
    if (has(name)) result.scores.push_back({name, score()});
  };
  const auto hit = [&](int64_t index) { return gold.is_hit(index) ? 1.0 : 0.0; };
  add("acc", [&] { return hit(predicted); });
  add("f1", [&] { return LabelPair{gold.one("f1"), predicted}; });
  add("mcc", [&] { return LabelPair{gold.one("mcc"), predicted}; });
  add("acc_norm",
      [&] { return hit(largest(divided(values, answer.choices, utf8::num_characters))); });
  add("acc_bytes", [&] { return hit(largest(divided(values, answer.choices, num_bytes))); });
  add("exact_match", [&] { return is_greedy ? 1.0 : 0.0; });
  add("brier_score", [&] {
    return ClassProbabilities{gold.one("brier_score"), softmax_of(values)};
  });
  add("gold_bits_per_byte", [&] {
    const int64_t right = gold.one("gold_bits_per_byte");
    if (right < 0 || right >= num_choices) return std::nan("");
    const auto at = static_cast<size_t>(right);
    return -values.at(at) / std::numbers::ln2 /
           static_cast<double>(std::max<size_t>(answer.choices.at(at).size(), 1));
  });
  add("acc_mutual_info", [&] {
    std::vector<double> information = values;
    for (size_t i = 0; i < values.size(); ++i) {
      information[i] -= answer.loglikelihoods[values.size() + i];
    }
    return largest(information) == gold.one("acc_mutual_info") ? 1.0 : 0.0;
  });
  return result;
}

std::vector<MetricScore> score_loglikelihood(double loglikelihood, bool is_greedy,
                                             const std::vector<ScoredMetric>& metrics) {
  std::vector<MetricScore> scores;
  for (const char* const name : {"perplexity", "acc"}) {
    for (const ScoredMetric& metric : metrics) {
      if (metric.name != name) continue;
      scores.push_back({name, metric.name == "acc" ? (is_greedy ? 1.0 : 0.0) : loglikelihood});
    }
  }
  return scores;
}

std::vector<MetricScore> score_rolling(double loglikelihood, std::string_view text,
                                       const std::vector<ScoredMetric>& metrics) {
  const int64_t words = count_split_words(text), bytes = std::ssize(text);
  std::vector<MetricScore> scores;
  for (const char* const name : {"word_perplexity", "byte_perplexity", "bits_per_byte"}) {
    for (const ScoredMetric& metric : metrics) {
      if (metric.name != name) continue;
      const bool is_of_words = metric.name == "word_perplexity";
      scores.push_back({name, WeightedLoglikelihood{loglikelihood, is_of_words ? words : bytes}});
    }
  }
  return scores;
}

}  // namespace skein
