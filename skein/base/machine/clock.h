// Durations of the monotonic clock, in seconds.
#pragma once

#include <chrono>

namespace skein {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace skein
