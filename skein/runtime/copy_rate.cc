#include "skein/runtime/copy_rate.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "skein/base/machine/clock.h"
#include "skein/base/threads/processor_time.h"

namespace skein {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;  // of all threads
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr double kMostOverSeconds = 4;  // by the clock, on a machine that is busy

// Of one thread, over its own processor time: the median of its pieces.
double median_bytes_per_s(char* to, const char* from, int64_t bytes, double seconds) {
  std::vector<double> rates;
  const Clock::time_point start = Clock::now();
  const double begin = thread_seconds();
  double now = begin;
  do {
    for (int64_t offset = 0; offset < bytes; offset += kPiece) {
      const int64_t piece = std::min(kPiece, bytes - offset);
      std::memcpy(to + offset, from + offset, static_cast<size_t>(piece));
      const double end = thread_seconds();
      rates.push_back(2.0 * static_cast<double>(piece) / std::max(end - now, 1e-9));
      now = end;
    }
  } while (now - begin < seconds && seconds_since(start) < kMostOverSeconds * seconds);
  const auto middle = rates.begin() + std::ssize(rates) / 2;
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

}  // namespace

double measure_copy_bytes_per_s(double seconds) {
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = kBytes * thread / threads, end = kBytes * (thread + 1) / threads;
#pragma omp barrier
    sum += median_bytes_per_s(to.data() + begin, from.data() + begin, end - begin, seconds);
  }
  return sum;
}

}  // namespace skein
