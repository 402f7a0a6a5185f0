// What ops take when nothing disturbs them, measured on a machine that other programs use too.
//
// Method   OpClocks asks two things about each run of an op: the processor time of the thread that
//          had the most, which stands still while another program has the core, and for how long
//          threads waited for a core. Where one waited, the processor time is too long as well: the
//          others spin until it comes, or do its share. So undisturbed_seconds() takes the median
//          of the runs in which none waited, and the least where each was disturbed
// Waiting  the second number of /proc/self/task/TID/schedstat. Where the kernel does not count it,
//          and with more than 8 threads, the time in which the calling thread did not compute: it
//          waited itself, or slept until the others were done. That overlooks waits that are
//          shorter than OpenMP's spins (base/machine/short_spins.h)
// Limits   of more than 8 threads 8 are asked for their processor time: threads share an op evenly.
//          An op of many milliseconds seldom runs undisturbed on a busy machine; its least may be
//          10 % too high
// Threads  the OpenMP pool of the caller, which must not change its size meanwhile. Asking takes
//          some microseconds a thread.
#pragma once

#include <time.h>

#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/machine/clock.h"

namespace skein {

// One run of an op.
struct OpObservation {
  double seconds = 0;
  double waited = 0;  // seconds for which threads waited for a core, of all together

  bool disturbed() const;
};

// Of runs of one op, or of ops that are alike; 0 of none.
double undisturbed_seconds(const std::vector<OpObservation>& runs);

class OpClocks {
 public:
  OpClocks();

  // For Executor::start_profile.
  void at_op(bool begins);
  // Of the ops since the last call, in order.
  std::vector<OpObservation> take();

 private:
  struct Thread {
    clockid_t clock{};
    FileDescriptor schedstat;
    double computed = 0, waited = 0;  // when last asked
  };
  static constexpr int kMostThreads = 8;

  std::vector<Thread> threads_;  // the caller's first
  bool waiting_is_counted_ = true;
  Clock::time_point began_;
  std::vector<OpObservation> runs_;
};

}  // namespace skein
