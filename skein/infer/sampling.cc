#include "skein/infer/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "skein/base/numbers/philox.h"

namespace skein {

int32_t next_token(std::span<float> logits, int32_t best, const SamplingOptions& options,
                   int64_t position) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const auto is_never = [&](int32_t id) {
    return std::find(options.never.begin(), options.never.end(), id) != options.never.end();
  };
  if (options.temperature <= 0 && !is_never(best)) return best;
  for (const int32_t id : options.never) logits[static_cast<size_t>(id)] = kNever;
  const Philox philox(options.seed, RandomPurpose::kSampling, 0, 0);
  return sample_token(logits, options.temperature, options.top_p,
                      Philox::to_uniform(philox.word(static_cast<uint64_t>(position))),
                      options.top_k);
}

int32_t sample_token(std::span<const float> logits, double temperature, double top_p, float uniform,
                     int64_t top_k) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<int32_t>(likeliest - logits.begin());
  std::vector<std::pair<double, int32_t>> weights;
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((static_cast<double>(logits[i]) - *likeliest) / temperature);
    weights.emplace_back(weight, static_cast<int32_t>(i));
    total += weight;
  }
  // A stable sort keeps equal probabilities in the order of ids, so that sampling is deterministic.
  std::stable_sort(weights.begin(), weights.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (top_k > 0 && top_k < static_cast<int64_t>(weights.size())) {
    weights.resize(static_cast<size_t>(top_k));
    total = 0;
    for (const auto& [weight, id] : weights) total += weight;
  }
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < top_p * total)) {
    kept += weights[count++].first;
  }
  double left = static_cast<double>(uniform) * kept;
  for (size_t i = 0; i < count; ++i) {
    left -= weights[i].first;
    if (left <= 0) return weights[i].second;
  }
  return weights[count - 1].second;
}

}  // namespace skein
