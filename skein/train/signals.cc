#include "skein/train/signals.h"

#include <atomic>
#include <cstring>
#include <iterator>

namespace skein {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGUSR2};
static_assert(std::size(kSignals) == StopSignals::kCount);

// A signal handler takes no context, so the flag is global.
std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

// To stop for good goes before stopping for another machine.
void remember(int signal) {
  int none = 0;
  if (signal == SIGUSR2) {
    stop_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed);
  } else {
    stop_signal.store(signal, std::memory_order_relaxed);
  }
}

}  // namespace

StopSignals::StopSignals() {
  stop_signal = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    action.sa_handler = remember;
    // After the first SIGINT the default action is back: the second one ends the process.
    action.sa_flags = SA_RESTART | (kSignals[i] == SIGINT ? SA_RESETHAND : 0);
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], nullptr, &former_[i]);
    // Under nohup, closing the terminal is no request to stop.
    const bool ignored = kSignals[i] == SIGHUP && former_[i].sa_handler == SIG_IGN;
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &former_[i], nullptr);
}

int StopSignals::requested() const { return stop_signal.load(std::memory_order_relaxed); }

std::string signal_name(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return abbreviation ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

}  // namespace skein
