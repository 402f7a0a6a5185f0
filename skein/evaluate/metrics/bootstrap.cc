#include "skein/evaluate/metrics/bootstrap.h"

#include <algorithm>
#include <numeric>

#include "skein/base/error.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/evaluate/python_random.h"

namespace skein {

std::vector<double> Bootstrap::values(size_t num_scores, const Statistic& statistic) const {
  constexpr int64_t kChunk = 1000, kMostRounds = 10'000'000;
  if (rounds > kMostRounds) {
    fail(ErrorCode::kUsage, "{} rounds of bootstrap: expected at most {}", rounds, kMostRounds);
  }
  if (num_scores > UINT32_MAX) fail(ErrorCode::kUnsupported, "{} scores", num_scores);
  const int64_t size = std::min(kChunk, rounds);
  std::vector<int64_t> chunks(static_cast<size_t>(rounds / size));
  std::iota(chunks.begin(), chunks.end(), 0);
  std::vector<double> values(chunks.size() * static_cast<size_t>(size));
  parallel_for_each(chunks, num_threads, [&](int64_t chunk) {
    PythonRandom random(static_cast<uint64_t>(chunk));
    std::vector<uint32_t> drawn(num_scores);
    std::vector<double> work;
    const auto count = static_cast<double>(num_scores);
    for (int64_t round = 0; round < size; ++round) {
      for (uint32_t& index : drawn) index = static_cast<uint32_t>(random.random() * count);
      values[static_cast<size_t>(chunk * size + round)] = statistic(drawn, work);
    }
  });
  return values;
}

}  // namespace skein
