// Ranks that are slower than their peers, and hold up all of them in every step.
//
// Measure  a rank's own time a step: computation, without waiting in collectives, which is where
//          the others wait for it. Each host measures its workers over kWorkWindow and publishes
//          that in its record
// Rule     a straggler takes more than kStragglerMargin times the median of the other ranks of its
//          pipeline stage, in every measurement for kStragglerTime. It is named once, and again
//          only after it had caught up
// Cost     of n ranks: O(n log n) a look, for a rank that may be slow O(n) more
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/supervise/store_view.h"

namespace skein {

constexpr Millis kWorkWindow = 10'000;
constexpr double kStragglerMargin = 1.3;
constexpr Millis kStragglerTime = 60'000;

struct Straggler {
  int rank = 0;
  std::string host;
  int64_t work_us = 0, median_us = 0;  // a step
};
std::string straggler_text(const Straggler& straggler);

// What the workers of one host need for a step of their own time.
class WorkMeter {
 public:
  explicit WorkMeter(int workers = 0) : begins_(static_cast<size_t>(workers)) {}
  // `work_us`: of all steps until `step`. Returns whether us_per_step changed.
  bool add(int index, int64_t step, int64_t work_us, Millis now);
  // By worker; empty until all of them are known.
  std::vector<int64_t> us_per_step() const;

 private:
  struct Begin {
    int64_t step = 0, work_us = 0;
    Millis time = 0;
    std::optional<int64_t> us_per_step;  // of the window before
  };
  std::vector<Begin> begins_;
};

class Stragglers {
 public:
  explicit Stragglers(int stages) : stages_(stages) {}
  // Those of the newest generation that were not named yet.
  std::vector<Straggler> find(const StoreView& view, Millis now);

 private:
  struct Slow {
    Millis since = 0;
    bool named = false;
  };
  int stages_;
  int64_t generation_ = 0;
  std::map<int, Slow> slow_;  // by rank
};

}  // namespace skein
