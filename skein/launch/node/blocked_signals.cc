#include "skein/launch/node/blocked_signals.h"

#include <algorithm>

namespace skein {

BlockedSignals::BlockedSignals(int wake) {
  sigemptyset(&waited_);
  for (const int signal : {SIGCHLD, SIGTERM, SIGUSR1, SIGINT, wake}) sigaddset(&waited_, signal);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&waited_, SIGHUP);  // not under nohup
  pthread_sigmask(SIG_BLOCK, &waited_, &former_);
  // If SIGCHLD is ignored, as some launchers leave it, the system hides how a child ended.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &former_child_);
}

BlockedSignals::~BlockedSignals() {
  while (wait(0) != 0) {  // a pending signal would end this process now
  }
  sigaction(SIGCHLD, &former_child_, nullptr);
  pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

int BlockedSignals::wait(Millis timeout) const {
  const Millis left = std::max<Millis>(0, timeout);
  const struct timespec limit = {left / 1000, left % 1000 * 1'000'000};
  return std::max(0, sigtimedwait(&waited_, nullptr, &limit));
}

}  // namespace skein
