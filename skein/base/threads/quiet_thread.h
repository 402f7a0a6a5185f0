// A thread to which no signal is delivered: those to the process go to threads that expect them.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace skein {

// All but those of a thread's own doing: held back, they would end the process whatever handles
// them.
inline sigset_t signals_to_hold_back() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&signals, own);
  return signals;
}

template <typename Work>
std::thread quiet_thread(Work&& work) {
  const sigset_t held = signals_to_hold_back();
  sigset_t former;
  pthread_sigmask(SIG_SETMASK, &held, &former);  // inherited by the thread
  std::thread thread(std::forward<Work>(work));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return thread;
}

}  // namespace skein
