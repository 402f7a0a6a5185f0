#include "skein/evaluate/metrics/aggregate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/bootstrap.h"
#include "skein/evaluate/metrics/labels.h"
#include "skein/evaluate/metrics/numpy_sum.h"

namespace skein {
namespace {

using Names = std::vector<std::string_view>;

double mean_of(const std::vector<double>& values) {
  return python_sum(values) / static_cast<double>(values.size());
}

double sample_deviation(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += python_square(value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// All scores as one of their kinds.
template <typename Kind>
std::vector<Kind> scores_as(const std::vector<Score>& scores, std::string_view metric,
                            std::string_view aggregation) {
  std::vector<Kind> all;
  all.reserve(scores.size());
  for (const Score& score : scores) {
    if (const Kind* const one = std::get_if<Kind>(&score)) {
      all.push_back(*one);
      continue;
    }
    fail(ErrorCode::kInvalid,
         "the metric {} gives scores of another kind than the aggregation {} "
         "needs: leave out `aggregation`",
         metric, aggregation);
  }
  return all;
}

double weighted_mean(const std::vector<WeightedLoglikelihood>& items, std::string_view metric) {
  double sum = 0;
  int64_t weight = 0;
  for (const WeightedLoglikelihood& item : items) {
    sum += item.loglikelihood;
    weight += item.weight;
  }
  if (weight == 0) fail(ErrorCode::kInvalid, "the metric {}: all texts are empty", metric);
  return sum / static_cast<double>(weight);
}

double brier_score(const std::vector<ClassProbabilities>& items, std::string_view metric) {
  std::vector<double> of_document;
  const size_t classes = items[0].probabilities.size();
  for (const ClassProbabilities& item : items) {
    if (item.probabilities.size() != classes) {
      fail(ErrorCode::kInvalid, "the metric {}: a document has {} choices, and the first has {}",
           metric, item.probabilities.size(), classes);
    }
    const auto count = static_cast<int64_t>(classes);
    const int64_t gold = item.gold < 0 ? item.gold + count : item.gold;
    if (gold < 0 || gold >= count) {
      fail(ErrorCode::kInvalid, "the metric {}: the target of a document is none of its choices",
           metric);
    }
    std::vector<double> squares;
    for (size_t i = 0; i < classes; ++i) {
      const double difference =
          item.probabilities[i] - (static_cast<int64_t>(i) == gold ? 1.0 : 0.0);
      squares.push_back(difference * difference);  // numpy squares arrays so
    }
    of_document.push_back(numpy_sum(squares));
  }
  return numpy_sum(of_document) / static_cast<double>(of_document.size());
}

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// numpy.nanmean: the values without NaN, in an order in which NaN counts as 0.
double nanmean_of(std::vector<double>& values) {
  int64_t count = 0;
  for (double& value : values) {
    if (std::isnan(value)) {
      value = 0;
    } else {
      ++count;
    }
  }
  return count == 0 ? std::nan("") : numpy_sum(values) / static_cast<double>(count);
}

// Of numbers: the statistic, and its bootstrap. `statistic` may change what it gets.
Aggregate of_numbers(const std::vector<double>& values,
                     const std::function<double(std::vector<double>&)>& statistic,
                     const Bootstrap& bootstrap) {
  std::vector<double> copy = values;
  Aggregate result{statistic(copy), {}};
  if (!bootstrap.is_needed(values.size())) return result;
  result.standard_error = sample_deviation(bootstrap.values(
      values.size(), [&](const std::vector<uint32_t>& drawn, std::vector<double>& sample) {
        sample.resize(drawn.size());
        for (size_t i = 0; i < drawn.size(); ++i) sample[i] = values[drawn[i]];
        return statistic(sample);
      }));
  return result;
}

Aggregate of_labels(const std::vector<LabelPair>& pairs, bool is_f1, std::string_view metric,
                    const Bootstrap& bootstrap) {
  const LabelCounts labels(pairs);
  if (is_f1) labels.check_binary(metric);
  const auto statistic = [&](const std::vector<int64_t>& counts) {
    return is_f1 ? labels.f1(counts) : labels.matthews_correlation(counts);
  };
  Aggregate result{statistic(labels.counts()), {}};
  if (!bootstrap.is_needed(pairs.size())) return result;
  result.standard_error = sample_deviation(
      bootstrap.values(pairs.size(), [&](const std::vector<uint32_t>& drawn, std::vector<double>&) {
        std::vector<int64_t> counts(labels.counts().size());
        for (const uint32_t i : drawn) ++counts[labels.cell_of(i)];
        return statistic(counts);
      }));
  return result;
}

double perplexity_of(std::vector<double>& values) { return std::exp(-mean_of(values)); }

}  // namespace

void check_aggregation(std::string_view aggregation, std::string_view metric) {
  static const Names kNames = {
      "mean",   "median",        "perplexity",          "nanmean",    "f1", "matthews_corrcoef",
      "bypass", "bits_per_byte", "weighted_perplexity", "brier_score"};
  if (std::find(kNames.begin(), kNames.end(), aggregation) != kNames.end()) return;
  fail(ErrorCode::kUnsupported,
       "the metric {}: the aggregation {} is not supported: expected one of {}", metric,
       aggregation, fmt::join(kNames, ", "));
}

Aggregate aggregate_scores(std::string_view metric, std::string_view aggregation,
                           const std::vector<Score>& scores, int64_t rounds, int num_threads) {
  check_aggregation(aggregation, metric);
  if (scores.empty()) fail(ErrorCode::kInvalid, "the metric {}: no document has a score", metric);
  const Bootstrap bootstrap{rounds, num_threads};
  const auto numbers = [&] { return scores_as<double>(scores, metric, aggregation); };
  const auto pairs = [&] { return scores_as<LabelPair>(scores, metric, aggregation); };
  const auto weighted = [&] {
    return weighted_mean(scores_as<WeightedLoglikelihood>(scores, metric, aggregation), metric);
  };
  if (aggregation == "bypass") return {999, {}};
  if (aggregation == "weighted_perplexity") return {std::exp(-weighted()), {}};
  if (aggregation == "bits_per_byte") return {-weighted() / std::log(2.0), {}};
  if (aggregation == "brier_score") {
    return {brier_score(scores_as<ClassProbabilities>(scores, metric, aggregation), metric), {}};
  }
  if (aggregation == "f1") return of_labels(pairs(), true, metric, bootstrap);
  if (aggregation == "matthews_corrcoef") return of_labels(pairs(), false, metric, bootstrap);
  const std::vector<double> values = numbers();
  if (aggregation == "mean") {
    Aggregate result{mean_of(values), {}};
    if (bootstrap.is_needed(values.size())) {
      result.standard_error =
          sample_deviation(values) / std::sqrt(static_cast<double>(values.size()));
    }
    return result;
  }
  if (aggregation == "nanmean") return of_numbers(values, nanmean_of, bootstrap);
  if (aggregation == "perplexity") return of_numbers(values, perplexity_of, bootstrap);
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
    fail(ErrorCode::kNotFinite, "the metric {}: a score is NaN, of which there is no median",
         metric);
  }
  return of_numbers(values, median_of, bootstrap);
}

Aggregate aggregate_group(const std::vector<TaskScore>& tasks, bool weight_by_size) {
  double values = 0, errors = 0;
  int64_t documents = 0, weights = 0;
  bool has_errors = true;
  for (const TaskScore& task : tasks) {
    const auto weight = static_cast<double>(weight_by_size ? task.num_documents : 1);
    values += task.value * weight;
    weights += weight_by_size ? task.num_documents : 1;
    documents += task.num_documents;
    has_errors = has_errors && task.standard_error.has_value();
    if (!has_errors) continue;
    const double square = python_square(*task.standard_error);
    const auto size = static_cast<double>(task.num_documents);
    errors += weight_by_size ? (size - 1) * square * size : square;
  }
  if (weights == 0) fail(ErrorCode::kInvalid, "a group without scores of documents");
  Aggregate result{values / static_cast<double>(weights), {}};
  const auto count = static_cast<int64_t>(tasks.size());
  if (!has_errors || (weight_by_size && documents == count)) return result;
  result.standard_error = weight_by_size
                              ? std::sqrt(errors / static_cast<double>(documents - count) /
                                          static_cast<double>(documents))
                              : std::sqrt(errors) / static_cast<double>(count);
  return result;
}

}  // namespace skein
