// What ranks that save together tell each other when one of them gives up, and how they wait.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "skein/base/error.h"

namespace skein {

// {"code": …, "error": "…"}
std::string failure_text(const Error& error);

// "rank 3: cannot write …", as that rank wrote it; of a text that is damaged (a full disk may hold
// a file's name without its content) only that it failed.
Error failure_of(std::string_view text, const std::string& where, int rank);

// Sleeps a little longer each time, so that a short wait ends soon and a long one costs little.
class Patience {
 public:
  Patience() = default;
  Patience(std::chrono::microseconds first, std::chrono::microseconds longest)
      : pause_(first), longest_(longest) {}
  void sleep() { sleep({}); }
  // Ends early where `should_abort` says so.
  void sleep(const std::function<bool()>& should_abort);
  double seconds() const;
  std::chrono::microseconds longest() const { return longest_; }
  // Throws Error{kPeerLost} where the save is to be given up, or has been waited for long enough.
  void check(const std::function<bool()>& should_abort, double limit_s,
             const std::string& waiting_for) const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::microseconds pause_{200}, longest_{100'000};
};

// Of one of `num_ranks` that wait for rank 0 to commit: each looks at the file system, so that all
// of them together look at most kMostLooks times a second, spread over the time, from some 200
// ranks on; and each at least every other second.
Patience patience_of_many(int rank, int num_ranks);
constexpr double kMostLooks = 2'500;

// "the part of rank 3 and 2 others": which of ranks 1, 2, … of `parts` is missing.
template <typename Parts>
std::string missing_parts(const Parts& parts) {
  size_t first = 0, num_missing = 0;
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    if (parts[rank].has_value()) continue;
    if (num_missing++ == 0) first = rank;
  }
  return fmt::format("waiting for the part of rank {}{}", first,
                     num_missing > 1 ? fmt::format(" and {} others", num_missing - 1) : "");
}

}  // namespace skein
