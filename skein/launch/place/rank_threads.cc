#include "skein/launch/place/rank_threads.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "skein/base/exception.h"

namespace skein {

std::vector<RankInfo> ranks_of_process(const RankInfo& process, int64_t count) {
  const auto each = static_cast<int>(count);
  std::vector<RankInfo> ranks;
  for (int i = 0; i < each; ++i) {
    RankInfo rank = process;
    rank.rank = process.rank * each + i;
    rank.size = process.size * each;
    rank.local_rank = process.local_rank * each + i;
    rank.local_size = process.local_size * each;
    ranks.push_back(rank);
  }
  return ranks;
}

int run_ranks(const std::vector<RankInfo>& ranks, const std::function<int(const RankInfo&)>& body) {
  if (ranks.size() == 1) return body(ranks.front());
  const int threads = std::max(1, omp_get_max_threads() / static_cast<int>(ranks.size()));
  std::vector<int> codes(ranks.size());
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> running;
  for (size_t i = 0; i < ranks.size(); ++i) {
    running.emplace_back([&, i] {
      omp_set_num_threads(threads);
      try {
        codes[i] = body(ranks[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::exception_ptr told;
  for (const std::exception_ptr& error : errors) {
    if (error == nullptr) continue;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      if (to_error(exception).code() != ErrorCode::kPeerLost) std::rethrow_exception(error);
      if (told == nullptr) told = error;
    }
  }
  if (told != nullptr) std::rethrow_exception(told);
  return codes.front();
}

}  // namespace skein
