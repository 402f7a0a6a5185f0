#include "skein/evaluate/metrics/labels.h"

#include <algorithm>
#include <cmath>

#include "skein/base/error.h"

namespace skein {

LabelCounts::LabelCounts(const std::vector<LabelPair>& pairs) {
  constexpr size_t kMostLabels = 4096;
  for (const LabelPair& pair : pairs) {
    labels_.push_back(pair.gold);
    labels_.push_back(pair.predicted);
  }
  std::sort(labels_.begin(), labels_.end());
  labels_.erase(std::unique(labels_.begin(), labels_.end()), labels_.end());
  if (labels_.size() > kMostLabels) {
    fail(ErrorCode::kUnsupported, "{} different labels: expected at most {}", labels_.size(),
         kMostLabels);
  }
  const auto number = [&](int64_t label) {
    return static_cast<size_t>(std::lower_bound(labels_.begin(), labels_.end(), label) -
                               labels_.begin());
  };
  counts_.resize(labels_.size() * labels_.size());
  for (const LabelPair& pair : pairs) {
    const size_t cell = number(pair.gold) * labels_.size() + number(pair.predicted);
    cells_.push_back(static_cast<uint32_t>(cell));
    ++counts_[cell];
  }
}

void LabelCounts::check_binary(std::string_view metric) const {
  const bool has_one = std::binary_search(labels_.begin(), labels_.end(), 1);
  if (labels_.size() == 1 || (labels_.size() == 2 && has_one)) return;
  fail(ErrorCode::kInvalid,
       "the metric {}: the labels are {}: expected 0 and 1, since f1 is of two classes", metric,
       fmt::join(labels_.begin(), labels_.begin() + std::min<ptrdiff_t>(8, std::ssize(labels_)),
                 ", "));
}

double LabelCounts::f1(const std::vector<int64_t>& counts) const {
  const size_t size = labels_.size();
  const auto one =
      static_cast<size_t>(std::lower_bound(labels_.begin(), labels_.end(), 1) - labels_.begin());
  if (one == size || labels_[one] != 1) return 0;
  int64_t golds = 0, predictions = 0;
  for (size_t i = 0; i < size; ++i) {
    golds += counts[one * size + i];
    predictions += counts[i * size + one];
  }
  if (golds + predictions == 0) return 0;
  return 2.0 * static_cast<double>(counts[one * size + one]) /
         static_cast<double>(golds + predictions);
}

double LabelCounts::matthews_correlation(const std::vector<int64_t>& counts) const {
  const size_t size = labels_.size();
  double correct = 0, all = 0, gold_predicted = 0, gold_gold = 0, predicted_predicted = 0;
  for (size_t i = 0; i < size; ++i) {
    double golds = 0, predictions = 0;
    for (size_t j = 0; j < size; ++j) {
      golds += static_cast<double>(counts[i * size + j]);
      predictions += static_cast<double>(counts[j * size + i]);
    }
    correct += static_cast<double>(counts[i * size + i]);
    all += predictions;
    gold_predicted += golds * predictions;
    gold_gold += golds * golds;
    predicted_predicted += predictions * predictions;
  }
  const double covariance = correct * all - gold_predicted;
  const double variances = (all * all - predicted_predicted) * (all * all - gold_gold);
  return variances == 0 ? 0 : covariance / std::sqrt(variances);
}

}  // namespace skein
