#include "skein/infer/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "skein/base/numbers/philox.h"

namespace skein {
namespace {

void penalize(std::span<float> logits, const SamplingOptions& options, const SampledText& text) {
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const int32_t id : std::unordered_set<int32_t>(text.tokens.begin(), text.tokens.end())) {
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  if (options.presence_penalty == 0 && options.frequency_penalty == 0) return;
  std::unordered_map<int32_t, int64_t> counts;
  for (const int32_t id : text.tokens.subspan(static_cast<size_t>(text.num_given))) ++counts[id];
  for (const auto& [id, count] : counts) {
    const double penalty =
        options.presence_penalty + options.frequency_penalty * static_cast<double>(count);
    logits[static_cast<size_t>(id)] -= static_cast<float>(penalty);
  }
}

// Weights of tokens, the largest first and equal ones in the order of ids; sorted as far as they
// are asked for, since a draw mostly needs few of a large vocabulary.
class SortedWeights {
 public:
  using Weight = std::pair<double, int32_t>;
  void add(double weight, int32_t id) { weights_.emplace_back(weight, id); }
  const Weight& operator[](size_t i) {
    while (i >= num_sorted_) sort_more();
    return weights_[i];
  }

 private:
  void sort_more() {
    const size_t end = std::min(weights_.size(), std::max<size_t>(64, 4 * num_sorted_));
    const auto at = [&](size_t i) { return weights_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::partial_sort(at(num_sorted_), at(end), weights_.end(),
                      [](const Weight& a, const Weight& b) {
                        return a.first > b.first || (a.first == b.first && a.second < b.second);
                      });
    num_sorted_ = end;
  }

  std::vector<Weight> weights_;
  size_t num_sorted_ = 0;
};

}  // namespace

bool SamplingOptions::needs_logits(int32_t best) const {
  return temperature > 0 || !bias.empty() || repetition_penalty != 1 || presence_penalty != 0 ||
         frequency_penalty != 0 || std::find(never.begin(), never.end(), best) != never.end();
}

int32_t next_token(std::span<float> logits, const SamplingOptions& options,
                   const SampledText& text) {
  for (const auto& [id, added] : options.bias) logits[static_cast<size_t>(id)] += added;
  penalize(logits, options, text);
  for (const int32_t id : options.never) {
    logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  }
  const Philox philox(options.seed, RandomPurpose::kSampling, 0, 0);
  const auto place = static_cast<uint64_t>(text.tokens.size());
  return sample_token(logits, options, Philox::to_uniform(philox.word(place)));
}

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, float uniform) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (options.temperature <= 0) return static_cast<int32_t>(likeliest - logits.begin());
  SortedWeights weights;
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight =
        std::exp((static_cast<double>(logits[i]) - *likeliest) / options.temperature);
    weights.add(weight, static_cast<int32_t>(i));
    total += weight;
  }
  size_t most = logits.size();
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < most) {
    most = static_cast<size_t>(options.top_k);
    total = 0;
    for (size_t i = 0; i < most; ++i) total += weights[i].first;
  }
  double kept = total;
  if (options.top_p < 1 || options.min_p > 0) {
    size_t count = 0;
    kept = 0;
    while (count < most && (count == 0 || kept < options.top_p * total)) {
      if (count > 0 && weights[count].first < options.min_p * weights[0].first) break;
      kept += weights[count++].first;
    }
    most = count;
  }
  double left = static_cast<double>(uniform) * kept;
  for (size_t i = 0; i < most; ++i) {
    left -= weights[i].first;
    if (left <= 0) return weights[i].second;
  }
  return weights[most - 1].second;
}

}  // namespace skein
