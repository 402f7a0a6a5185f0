#include "skein/cli/early_stop.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "skein/base/ending.h"

namespace skein {
namespace {

constexpr int kStops[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};

void end(int) {
  constexpr std::string_view kLine = "skein: stopped by a signal: the same command resumes\n";
  if (::write(STDERR_FILENO, kLine.data(), kLine.size()) < 0) {
    // nobody listens
  }
  ::_exit(kExitRequeue);
}

void set_mask(int how) {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : kStops) sigaddset(&stops, signal);
  pthread_sigmask(how, &stops, nullptr);
}

}  // namespace

void answer_early_stops() {
  for (const int signal : kStops) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = end;
    sigaction(signal, &action, nullptr);
  }
  set_mask(SIG_UNBLOCK);
}

void hold_early_stops() { set_mask(SIG_BLOCK); }

}  // namespace skein
