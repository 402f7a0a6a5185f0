// The processor time of threads, in seconds: it stands still while another thread or process has
// the core, so that rates over it do not depend on what else runs on the machine.
#pragma once

#include <pthread.h>
#include <time.h>

namespace skein {

inline double seconds_of_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of the calling thread since it began.
inline double thread_seconds() { return seconds_of_clock(CLOCK_THREAD_CPUTIME_ID); }

// The clock of the calling thread, for other threads to read while it lives.
inline clockid_t clock_of_this_thread() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(pthread_self(), &clock);
  return clock;
}

}  // namespace skein
