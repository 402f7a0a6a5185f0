// What interrupts large runs, and how often.
#include <algorithm>
#include <numeric>

#include "skein/supervise/goodput/goodput.h"

namespace skein {

std::vector<FailureCause> llama3_failures() {
  using enum FailureEffect;
  return {
      {"faulty GPU", kCrash, true, 148},
      {"GPU memory", kCrash, true, 72},
      {"software", kCrash, false, 54},
      {"network switch or cable", kHang, false, 35},
      {"unplanned host maintenance", kLost, true, 32},
      {"GPU SRAM", kCrash, true, 19},
      {"GPU system processor", kHang, true, 17},
      {"network interface", kHang, true, 7},
      {"collective's watchdog", kHang, false, 7},
      {"silent corruption", kCrash, true, 6},
      {"GPU thermal interface or sensor", kCrash, true, 6},
      {"SSD", kCrash, true, 3},
      {"power supply", kLost, true, 3},
      {"server chassis", kLost, true, 2},
      {"IO expansion board", kLost, true, 2},
      {"dependency", kCrash, false, 2},
      {"CPU", kLost, true, 2},
      {"system memory", kLost, true, 2},
      {"planned maintenance", kAsked, true, 47},
  };
}

std::vector<FailureCause> scaled(std::vector<FailureCause> causes, int count) {
  const auto total =
      std::accumulate(causes.begin(), causes.end(), int64_t{0},
                      [](int64_t sum, const FailureCause& cause) { return sum + cause.count; });
  if (total == 0) return causes;
  std::vector<std::pair<int64_t, FailureCause*>> remainders;
  int64_t left = count;
  for (FailureCause& cause : causes) {
    const int64_t share = int64_t{count} * cause.count;
    remainders.emplace_back(share % total, &cause);
    cause.count = static_cast<int>(share / total);
    left -= cause.count;
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (int64_t i = 0; i < left; ++i) ++remainders[static_cast<size_t>(i)].second->count;
  return causes;
}

}  // namespace skein
