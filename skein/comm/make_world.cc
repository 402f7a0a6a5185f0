#include <numeric>

#include "skein/base/error.h"
#include "skein/comm/gloo/gloo_communicator.h"
#include "skein/comm/gloo/tree_communicator.h"
#include "skein/comm/local/local_communicator.h"

namespace skein {
namespace {

// Up to this many ranks all connect with each other. In a larger world each connects only with the
// ranks that it works with and with its neighbours in a tree.
constexpr int kMostConnectedRanks = 16;
constexpr int kFanOut = 8;

}  // namespace

std::unique_ptr<Communicator> make_world(const WorldOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    fail(ErrorCode::kUsage, "rank {} of a world of {}: ranks are 0 to size - 1", options.rank,
         options.size);
  }
  if (options.size == 1) return std::make_unique<LocalCommunicator>("world");
  auto world = std::make_shared<GlooWorld>(options);
  if (options.size > kMostConnectedRanks) {
    return std::make_unique<TreeCommunicator>(std::move(world), kFanOut);
  }
  std::vector<int> ranks(static_cast<size_t>(options.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  world->connect(ranks);  // so that each rank notices at once if another dies
  return std::make_unique<GlooCommunicator>(std::move(world), ranks, "world");
}

}  // namespace skein
