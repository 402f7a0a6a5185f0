// What one document gives to a metric, before it is aggregated over documents (aggregate.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace skein {

// Of word_perplexity, byte_perplexity and bits_per_byte; the weight is words or bytes.
struct WeightedLoglikelihood {
  double loglikelihood;
  int64_t weight;
};
// Of f1 and mcc. The gold is -100 where the target is none of the choices.
struct LabelPair {
  int64_t gold, predicted;
};
// Of brier_score.
struct ClassProbabilities {
  int64_t gold;
  std::vector<double> probabilities;
};
struct NoScore {};  // of bypass: null

using Score = std::variant<double, WeightedLoglikelihood, LabelPair, ClassProbabilities, NoScore>;

struct MetricScore {
  std::string metric;
  Score score;
};

}  // namespace skein
