#include "skein/evaluate/metrics/document_scores.h"

#include <algorithm>
#include <cmath>
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

struct JudgedChoices {
  const MultipleChoiceAnswer& answer;
  std::vector<double> loglikelihoods;  // with the context, of each choice
  Gold gold;
  bool is_gold_greedy = false;

  double hit(int64_t index) const { return gold.is_hit(index) ? 1.0 : 0.0; }
};

namespace {

Score gold_bits_per_byte(const JudgedChoices& judged) {
  const int64_t right = judged.gold.one("gold_bits_per_byte");
  if (right < 0 || right >= std::ssize(judged.loglikelihoods)) return std::nan("");
  const auto at = static_cast<size_t>(right);
  return -judged.loglikelihoods[at] / std::numbers::ln2 /
         static_cast<double>(std::max<size_t>(judged.answer.choices.at(at).size(), 1));
}

Score mutual_information(const JudgedChoices& judged) {
  std::vector<double> information = judged.loglikelihoods;
  const size_t count = information.size();
  for (size_t i = 0; i < count; ++i) information[i] -= judged.answer.loglikelihoods[count + i];
  return largest(information) == judged.gold.one("acc_mutual_info") ? 1.0 : 0.0;
}

Score hit_by(const JudgedChoices& judged, size_t (*length)(std::string_view)) {
  return judged.hit(largest(divided(judged.loglikelihoods, judged.answer.choices, length)));
}

// The scores of the metrics in the order of their rows; `score` gives that of a row.
template <typename ScoreOf>
std::vector<MetricScore> scores_by_row(const std::vector<ScoredMetric>& metrics,
                                       const ScoreOf& score) {
  std::vector<MetricScore> scores;
  for (const MetricRow& row : metric_rows()) {
    for (const ScoredMetric& metric : metrics) {
      if (metric.name == row.name) scores.push_back({metric.name, score(row)});
    }
  }
  return scores;
}

}  // namespace

std::span<const MetricRow> metric_rows() {
  using Choices = JudgedChoices;
  static const std::vector<MetricRow> kRows = {
      {.name = "perplexity",
       .aggregation = "perplexity",
       .higher_is_better = false,
       .of_loglikelihood = [](double loglikelihood, bool) -> Score { return loglikelihood; }},
      {.name = "acc",
       .aggregation = "mean",
       .of_choices = [](const Choices& c) -> Score { return c.hit(largest(c.loglikelihoods)); },
       .of_loglikelihood = [](double, bool is_greedy) -> Score { return is_greedy ? 1.0 : 0.0; }},
      {.name = "f1",
       .aggregation = "f1",
       .of_choices = [](const Choices& c) -> Score {
         return LabelPair{c.gold.one("f1"), largest(c.loglikelihoods)};
       }},
      {.name = "mcc",
       .aggregation = "matthews_corrcoef",
       .of_choices = [](const Choices& c) -> Score {
         return LabelPair{c.gold.one("mcc"), largest(c.loglikelihoods)};
       }},
      {.name = "acc_norm",
       .aggregation = "mean",
       .of_choices = [](const Choices& c) { return hit_by(c, utf8::num_characters); }},
      {.name = "acc_bytes",
       .aggregation = "mean",
       .of_choices = [](const Choices& c) { return hit_by(c, num_bytes); }},
      {.name = "exact_match",
       .aggregation = "mean",
       .of_choices = [](const Choices& c) -> Score { return c.is_gold_greedy ? 1.0 : 0.0; },
       .of_generated = true},
      {.name = "brier_score",
       .aggregation = "brier_score",
       .higher_is_better = false,
       .of_choices = [](const Choices& c) -> Score {
         return ClassProbabilities{c.gold.one("brier_score"), softmax_of(c.loglikelihoods)};
       }},
      {.name = "gold_bits_per_byte",
       .aggregation = "mean",
       .higher_is_better = false,
       .of_choices = gold_bits_per_byte},
      {.name = "acc_mutual_info", .aggregation = "mean", .of_choices = mutual_information},
      {.name = "word_perplexity",
       .aggregation = "weighted_perplexity",
       .higher_is_better = false,
       .of_rolling = [](double loglikelihood, int64_t words, int64_t) -> Score {
         return WeightedLoglikelihood{loglikelihood, words};
       }},
      {.name = "byte_perplexity",
       .aggregation = "weighted_perplexity",
       .higher_is_better = false,
       .of_rolling = [](double loglikelihood, int64_t, int64_t bytes) -> Score {
         return WeightedLoglikelihood{loglikelihood, bytes};
       }},
      {.name = "bits_per_byte",
       .aggregation = "bits_per_byte",
       .higher_is_better = false,
       .of_rolling = [](double loglikelihood, int64_t, int64_t bytes) -> Score {
         return WeightedLoglikelihood{loglikelihood, bytes};
       }},
      {.name = "bypass", .aggregation = "bypass", .of_generated = true},
  };
  return kRows;
}

bool MetricRow::is_of(OutputType type) const {
  switch (type) {
    case OutputType::kMultipleChoice:
      return of_choices != nullptr;
    case OutputType::kLoglikelihood:
      return of_loglikelihood != nullptr;
    case OutputType::kRolling:
      return of_rolling != nullptr;
    case OutputType::kGenerateUntil:
      break;
  }
  return of_generated;
}

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
  const bool has_mutual_info =
      std::any_of(metrics.begin(), metrics.end(),
                  [](const ScoredMetric& metric) { return metric.name == "acc_mutual_info"; });
  check_counts(answer, has_mutual_info);
  const auto num_choices = static_cast<ptrdiff_t>(answer.choices.size());
  JudgedChoices judged{.answer = answer,
                       .loglikelihoods = {answer.loglikelihoods.begin(),
                                          answer.loglikelihoods.begin() + num_choices},
                       .gold = gold_of(answer)};
  judged.is_gold_greedy = is_any_greedy(judged.gold, answer.is_greedy);
  return {.scores =
              scores_by_row(metrics, [&](const MetricRow& row) { return row.of_choices(judged); }),
          .is_target_a_choice = !judged.gold.has_none()};
}

std::vector<MetricScore> score_loglikelihood(double loglikelihood, bool is_greedy,
                                             const std::vector<ScoredMetric>& metrics) {
  return scores_by_row(metrics, [&](const MetricRow& row) {
    return row.of_loglikelihood(loglikelihood, is_greedy);
  });
}

std::vector<MetricScore> score_rolling(double loglikelihood, std::string_view text,
                                       const std::vector<ScoredMetric>& metrics) {
  const int64_t words = count_split_words(text), bytes = std::ssize(text);
  return scores_by_row(
      metrics, [&](const MetricRow& row) { return row.of_rolling(loglikelihood, words, bytes); });
}

}  // namespace skein
