#include "skein/base/error.h"
#include "skein/comm/gloo/gloo_communicator.h"
#include "skein/comm/local/local_communicator.h"

namespace skein {

std::unique_ptr<Communicator> make_world(const WorldOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    fail(ErrorCode::kUsage, "rank {} of a world of {}: ranks are 0 to size - 1", options.rank,
         options.size);
  }
  if (options.size == 1) return std::make_unique<LocalCommunicator>("world");
  std::vector<int> ranks;
  for (int rank = 0; rank < options.size; ++rank) ranks.push_back(rank);
  return std::make_unique<GlooCommunicator>(std::make_shared<GlooWorld>(options), ranks, "world");
}

}  // namespace skein
