// Samples with replacement as lm-evaluation-harness draws them; for aggregate.cc.
//
// Formula  chunks of min(1,000, rounds) samples; chunk i draws with Python's random.Random(i)
// Threads  `statistic` runs on several at once, each with a `work` of its own
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace skein {

struct Bootstrap {
  int64_t rounds = 0;
  int num_threads = 1;

  // Whether lm-evaluation-harness has a standard error of so many scores.
  bool is_needed(size_t num_scores) const { return rounds > 0 && num_scores > 1; }

  // The statistic of each sample, which is the indices of its scores, in the order of the draws.
  using Statistic =
      std::function<double(const std::vector<uint32_t>& drawn, std::vector<double>& work)>;
  std::vector<double> values(size_t num_scores, const Statistic& statistic) const;
};

}  // namespace skein
