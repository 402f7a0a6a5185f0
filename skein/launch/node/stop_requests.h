// What signals asked this machine's supervisor for.
//
// Twice  so long after the first SIGINT another one is the first one again: `timeout -s INT` sends
//        it to a process and to its group
#pragma once

#include <csignal>
#include <optional>

#include "skein/base/text/log.h"
#include "skein/supervise/records.h"

namespace skein {

class StopRequests {
 public:
  enum class Asks : uint8_t { kNothing, kStop, kEndAtOnce };

  Asks hear(int signal, Millis now) {
    if (signal == SIGINT && interrupted_) {
      if (now - *interrupted_ < kSameInterrupt) return Asks::kNothing;
      return Asks::kEndAtOnce;
    }
    if (signal == SIGINT) {
      interrupted_ = now;
      log::info("stopping after this step; Ctrl-C again ends without saving");
    }
    any_ = true;
    return Asks::kStop;
  }
  bool any() const { return any_; }
  bool is_interrupted() const { return interrupted_.has_value(); }

 private:
  static constexpr Millis kSameInterrupt = 1000;

  bool any_ = false;
  std::optional<Millis> interrupted_;  // when the first SIGINT came
};

}  // namespace skein
