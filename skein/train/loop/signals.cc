#include "skein/train/loop/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string_view>

#include "skein/base/shared/heartbeat.h"

namespace skein {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGUSR2};
static_assert(std::size(kSignals) == StopSignals::kCount);

// So long after the first SIGINT another one is the first one again.
constexpr int64_t kSameInterruptMillis = 1000;

// A signal handler takes no context, so these are global.
std::atomic<int> stop_signal{0};
std::atomic<int64_t> first_interrupt{0};  // when it came, in ms since the machine booted; 0: never
std::atomic<int64_t> done_step{0};
std::atomic<int64_t> saved_step{0};
std::atomic<bool> tells_signals{false};
std::atomic<bool> ends_at_second{true};
std::atomic<bool> has_ended{false};
std::atomic<const UnsavedStop*> stop_event{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<const UnsavedStop*>::is_always_lock_free);

void put(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody could be told
}

void tell_interrupt(bool is_first) {
  if (!tells_signals || has_ended) return;
  if (::isatty(STDERR_FILENO) == 1) put("\r\033[K");  // the progress line
  if (is_first) {
    put("stopping after this step; Ctrl-C again ends without saving\n");
  } else if (const int64_t step = saved_step; step == 0) {
    put("ended without saving: nothing was saved so far\n");
  } else {
    std::array<char, 20> digits{};
    const char* end = std::to_chars(digits.begin(), digits.end(), step).ptr;
    put("ended without saving: nothing was saved since step ");
    put({digits.data(), static_cast<size_t>(end - digits.data())});
    put("\n");
  }
}

void interrupted() {
  const int saved_errno = errno;
  int64_t first = 0;
  const int64_t now = boot_millis();
  if (first_interrupt.compare_exchange_strong(first, now)) {
    tell_interrupt(/*is_first=*/true);
  } else if (ends_at_second && now - first >= kSameInterruptMillis) {
    tell_interrupt(/*is_first=*/false);
    const UnsavedStop* event = stop_event;
    if (event != nullptr && !has_ended) event->write(done_step, saved_step);
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);  // ends the process as soon as the handler returns
  }
  errno = saved_errno;
}

// To stop for good goes before stopping for another machine.
void remember(int signal) {
  int none = 0;
  if (signal == SIGINT) interrupted();
  if (signal == SIGUSR2) {
    stop_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed);
  } else {
    stop_signal.store(signal, std::memory_order_relaxed);
  }
}

}  // namespace

StopSignals::StopSignals(const Options& options) {
  stop_signal = 0;
  first_interrupt = done_step = saved_step = 0;
  tells_signals = options.tells;
  ends_at_second = options.ends;
  has_ended = false;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], nullptr, &former_[i]);
    // Under nohup, closing the terminal is no request to stop.
    const bool ignored = kSignals[i] == SIGHUP && former_[i].sa_handler == SIG_IGN;
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &former_[i], nullptr);
  stop_event = nullptr;
}

int StopSignals::requested() const { return stop_signal.load(std::memory_order_relaxed); }

void StopSignals::note_saved(int64_t step) { saved_step.store(step, std::memory_order_relaxed); }

void StopSignals::note_step(int64_t step) { done_step.store(step, std::memory_order_relaxed); }

void StopSignals::record_in(const fs::path& run_dir) {
  unsaved_stop_.emplace(run_dir);
  stop_event = &*unsaved_stop_;
}

void StopSignals::note_end() { has_ended = true; }

std::string signal_name(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return abbreviation ? std::string("SIG") + abbreviation : "signal " + std::to_string(signal);
}

}  // namespace skein
