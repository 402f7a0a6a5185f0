// How far a command is: one line on a terminal, drawn again and again; elsewhere a line now and
// then.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace skein {

class ReadingLine {
 public:
  struct Status {
    std::string what;       // is done, with what it has counted
    int64_t num_bytes = 0;  // of text
    // The work that time is reckoned by, in any unit, and all of it; 0: it is not known.
    int64_t done = 0, of = 0;
  };
  void show(const Status& state);

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(const Status& state, Clock::time_point now) const;

  bool is_begun_ = false;
  Clock::time_point begin_, last_;
  Status first_;
};

}  // namespace skein
