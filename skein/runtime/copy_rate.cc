#include "skein/runtime/copy_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

namespace skein {

double measure_copy_bytes_per_s(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kBytes = int64_t{64} << 20;
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  const auto copy = [&] {
#pragma omp parallel for schedule(static)
    for (int64_t offset = 0; offset < kBytes; offset += kPiece) {
      std::memcpy(to.data() + offset, from.data() + offset, kPiece);
    }
  };
  copy();
  double best = 0;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    copy();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * kBytes / took);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

}  // namespace skein
