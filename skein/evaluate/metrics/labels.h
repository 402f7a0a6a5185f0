// How often each pair of a gold and a predicted label comes, with scikit-learn's f1_score and
// matthews_corrcoef of it; for aggregate.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "skein/evaluate/metrics/score.h"

namespace skein {

class LabelCounts {
 public:
  explicit LabelCounts(const std::vector<LabelPair>& pairs);

  const std::vector<int64_t>& counts() const { return counts_; }  // [gold][predicted]
  size_t cell_of(size_t pair) const { return cells_[pair]; }      // where `counts` has it

  // Throws where scikit-learn refuses f1: more than two labels, or two without 1.
  void check_binary(std::string_view metric) const;

  // Of label 1: 2 true positives / (golds + predictions); 0 without any.
  double f1(const std::vector<int64_t>& counts) const;
  double matthews_correlation(const std::vector<int64_t>& counts) const;

 private:
  std::vector<int64_t> labels_;  // sorted
  std::vector<uint32_t> cells_;
  std::vector<int64_t> counts_;
};

}  // namespace skein
