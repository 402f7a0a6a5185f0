#include "skein/train/consensus.h"

#include <cstring>
#include <vector>

namespace skein {
namespace {

constexpr double kPatienceSeconds = 3600;

void broadcast(Communicator& world, int32_t* data, int64_t elements) {
  Collective collective{.kind = CollectiveKind::kBroadcast, .dtype = DType::kI32};
  collective.parts.push_back({.input = data, .output = data, .elements = elements});
  collective.label = "rank 0's decision";
  collective.timeout_s = kPatienceSeconds;
  world.run(collective);
}

}  // namespace

double sum_over_ranks(Communicator& world, double value) {
  if (world.size() == 1) return value;
  double total = 0;
  Collective collective{.kind = CollectiveKind::kAllReduce, .dtype = DType::kF64};
  collective.parts.push_back({.input = &value, .output = &total, .elements = 1});
  collective.label = "what all ranks must agree on";
  std::vector<std::byte> scratch(collective_scratch_bytes(collective, world.size()));
  collective.scratch = scratch.data();
  world.run(collective);
  return total;
}

std::string text_of_rank_0(Communicator& world, const std::string& text) {
  if (world.size() == 1) return text;
  int32_t size = static_cast<int32_t>(text.size());
  broadcast(world, &size, 1);
  std::vector<int32_t> words((static_cast<size_t>(size) + 3) / 4 + 1);
  if (world.rank() == 0) std::memcpy(words.data(), text.data(), text.size());
  broadcast(world, words.data(), static_cast<int64_t>(words.size()));
  return {reinterpret_cast<const char*>(words.data()), static_cast<size_t>(size)};
}

void wait_for_all(Communicator& world, std::string_view why) {
  Collective barrier;
  barrier.label = why;
  barrier.timeout_s = kPatienceSeconds;
  world.run(barrier);
}

}  // namespace skein
