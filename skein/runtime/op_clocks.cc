#include "skein/runtime/op_clocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "skein/base/threads/processor_time.h"

namespace skein {
namespace {

FileDescriptor schedstat_of_this_thread() {
  const std::string path = fmt::format("/proc/self/task/{}/schedstat", gettid());
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Seconds that a thread was ready and had no core; negative where the kernel does not count them,
// which it says by a thread that never ran.
double waited_seconds(const FileDescriptor& schedstat) {
  std::array<char, 96> text{};
  if (pread(schedstat.get(), text.data(), text.size() - 1, 0) <= 0) return -1;
  unsigned long long ran = 0, waited = 0;
  if (std::sscanf(text.data(), "%llu %llu", &ran, &waited) != 2 || ran == 0) return -1;
  return 1e-9 * static_cast<double>(waited);
}

}  // namespace

bool OpObservation::disturbed() const {
  constexpr double kWakingUp = 100e-6;  // a thread that slept waits so long on an idle core too
  constexpr double kShare = 0.02;
  return waited > std::max(kWakingUp, kShare * seconds);
}

double undisturbed_seconds(const std::vector<OpObservation>& runs) {
  std::vector<double> undisturbed;
  double least = 0;
  for (const OpObservation& run : runs) {
    least = &run == &runs.front() ? run.seconds : std::min(least, run.seconds);
    if (!run.disturbed()) undisturbed.push_back(run.seconds);
  }
  if (undisturbed.empty()) return least;
  const auto middle = undisturbed.begin() + std::ssize(undisturbed) / 2;
  std::nth_element(undisturbed.begin(), middle, undisturbed.end());
  return *middle;
}

OpClocks::OpClocks() {
  threads_.resize(static_cast<size_t>(std::min(omp_get_max_threads(), kMostThreads)));
#pragma omp parallel
  if (omp_get_thread_num() < static_cast<int>(threads_.size())) {
    Thread& thread = threads_[static_cast<size_t>(omp_get_thread_num())];
    thread.clock = clock_of_this_thread();
    thread.schedstat = schedstat_of_this_thread();
  }
  waiting_is_counted_ = omp_get_max_threads() <= kMostThreads &&
                        std::ranges::all_of(threads_, [](const Thread& thread) {
                          return waited_seconds(thread.schedstat) >= 0;
                        });
}

void OpClocks::at_op(bool begins) {
  const Clock::time_point now = Clock::now();
  OpObservation run;
  for (Thread& thread : threads_) {
    const double computed = seconds_of_clock(thread.clock);
    run.seconds = std::max(run.seconds, computed - std::exchange(thread.computed, computed));
    if (waiting_is_counted_) {
      const double waited = waited_seconds(thread.schedstat);
      run.waited += waited - std::exchange(thread.waited, waited);
    } else if (&thread == &threads_.front()) {
      const double passed = std::chrono::duration<double>(now - began_).count();
      run.waited = passed - run.seconds;  // the caller's own, so far
    }
  }
  if (!begins) runs_.push_back(run);
  began_ = begins ? Clock::now() : now;
}

std::vector<OpObservation> OpClocks::take() { return std::exchange(runs_, {}); }

}  // namespace skein
