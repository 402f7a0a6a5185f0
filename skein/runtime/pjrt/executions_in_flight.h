// How far the host may run ahead of a device: programs that were started and have not ended.
//
// Errors   one that a program met while it ran, by the name it was started with. An error goes on
//          to every program that reads its results, so the first one is the cause
// Threads  one at a time
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "skein/runtime/pjrt/pjrt_client.h"

namespace skein {

class ExecutionsInFlight {
 public:
  // `most`: so many may be in flight; 0: each is waited for.
  explicit ExecutionsInFlight(int64_t most) : most_(most) {}

  // A program was started whose results are there, or failed, at `end`. Waits for the oldest while
  // there are more than `most`. `what` names it. Throws Error{kInternal} "<what>: <what the plugin
  // says>".
  void started(std::string what, PjrtEvent end);
  // Waits for all.
  void finish();
  // The error of the first one that failed, as above; "": none did. Waits for all, and never
  // throws. It remains the answer from then on.
  std::string failure();

 private:
  void finish_oldest();

  struct Execution {
    std::string what;
    PjrtEvent end;
  };
  const int64_t most_;
  std::deque<Execution> in_flight_;  // the oldest first
  std::string failure_;
};

}  // namespace skein
