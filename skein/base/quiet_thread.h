// A thread to which no signal is delivered: those to the process go to threads that expect them.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace skein {

template <typename Work>
std::thread quiet_thread(Work&& work) {
  sigset_t all, former;
  sigfillset(&all);
  // Those of a thread's own doing: held back, they would end the process whatever handles them.
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &former);  // inherited by the thread
  std::thread thread(std::forward<Work>(work));
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  return thread;
}

}  // namespace skein
