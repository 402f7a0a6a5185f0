#include "skein/cli/plan/run_search.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/cli/shared/command.h"
#include "skein/cli/shared/print.h"

namespace skein {
namespace {

volatile std::sig_atomic_t g_search_signal = 0;
std::atomic<int64_t> g_search_asked{0};  // when, in ms since the machine booted
// `timeout` signals a process and then its group: a signal this early is the first one again.
constexpr int64_t kSameSignalMillis = 1000;

void note_search_signal(int signal) {
  const int saved_errno = errno;
  int64_t first = 0;
  const int64_t now = boot_millis();
  if (g_search_asked.compare_exchange_strong(first, now)) {
    g_search_signal = signal;
  } else if (now - first >= kSameSignalMillis) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = saved_errno;
}

class SearchStop {
 public:
  SearchStop() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      former_[i] = std::signal(kSignals[i], note_search_signal);
      if (former_[i] == SIG_IGN) std::signal(kSignals[i], SIG_IGN);
    }
  }
  ~SearchStop() {
    for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], former_[i]);
  }
  SearchStop(const SearchStop&) = delete;
  SearchStop& operator=(const SearchStop&) = delete;

  static bool is_asked() { return g_search_signal != 0; }
  // Does not return where it was asked.
  static void end_by_signal() {
    if (!is_asked()) return;
    const int signal = g_search_signal;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM};
  std::array<void (*)(int), kSignals.size()> former_{};
};

class SearchLine {
 public:
  explicit SearchLine(double most_seconds) : most_seconds_(most_seconds) {}

  void show(const SearchProgress& progress) {
    if (log::on_terminal()) {
      struct winsize size {};
      const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
      // A longer line would wrap, and only its last row would be redrawn.
      const size_t width = is_known ? size.ws_col : 80;
      fmt::print(stderr, "\r\033[K{}", text(progress).substr(0, width - 1));
      is_drawn_ = true;
    } else if (progress.seconds >= next_) {
      fmt::print(stderr, "{}\n", text(progress));
      next_ = progress.seconds + kLineEvery;
    }
  }
  void end() const {
    if (is_drawn_) fmt::print(stderr, "\r\033[K");
  }

 private:
  static constexpr double kLineEvery = 10;  // where there is no terminal

  std::string text(const SearchProgress& progress) const {
    std::string text = fmt::format(
        "{:.0f} of {:.0f} s: {} of {} layouts sketched, {} planned in full", progress.seconds,
        most_seconds_, progress.num_sketched, progress.num_layouts, progress.num_planned);
    if (progress.best_seconds > 0) {
      text += fmt::format("; the best takes {} a step: {}",
                          format_short_duration(progress.best_seconds), progress.best);
    }
    return text;
  }

  const double most_seconds_;
  double next_ = kLineEvery;
  bool is_drawn_ = false;
};

}  // namespace

int run_search(const PlanRequest& request, double most_seconds, bool json) {
  const SearchStop stop;
  SearchLine line(most_seconds);
  LayoutSearchOptions options;
  options.seconds = most_seconds;
  options.on_progress = [&](const SearchProgress& progress) {
    line.show(progress);
    return !SearchStop::is_asked();
  };
  const SearchResult found = search_layouts(request, options);
  line.end();
  if (json) {
    fmt::print(stderr, "{} layouts: {}\n", found.num_layouts, search_summary(found));
    print_json(search_to_json(found));
  } else {
    print_text(stdout, search_to_text(found, request));
  }
  flush_output();
  SearchStop::end_by_signal();
  return kExitDone;
}

}  // namespace skein
