#include "skein/train/start/consensus.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace skein {
namespace {

constexpr double kPatienceSeconds = 3600;

void broadcast(Communicator& world, int root, int32_t* data, int64_t elements) {
  Collective collective{.kind = CollectiveKind::kBroadcast, .dtype = DType::kI32};
  collective.peer = root;
  collective.parts.push_back({.input = data, .output = data, .elements = elements});
  collective.label = "the decision of one rank";
  collective.timeout_s = kPatienceSeconds;
  world.run(collective);
}

}  // namespace

void sum_over_ranks(Communicator& world, std::vector<double>& values) {
  if (world.size() == 1) return;
  std::vector<double> totals(values.size());
  Collective collective{.kind = CollectiveKind::kAllReduce, .dtype = DType::kF64};
  collective.parts.push_back({.input = values.data(),
                              .output = totals.data(),
                              .elements = static_cast<int64_t>(values.size())});
  collective.label = "what all ranks must agree on";
  std::vector<std::byte> scratch(collective_scratch_bytes(collective, world.size()));
  collective.scratch = scratch.data();
  world.run(collective);
  values = std::move(totals);
}

double sum_over_ranks(Communicator& world, double value) {
  std::vector<double> values = {value};
  sum_over_ranks(world, values);
  return values.front();
}

std::vector<int64_t> values_of_all(Communicator& world, std::span<const int64_t> mine) {
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(world.size()));
  if (world.size() == 1) return {mine.begin(), mine.end()};
  const auto words = static_cast<int64_t>(2 * mine.size());  // sent as pairs of i32
  Collective collective{.kind = CollectiveKind::kAllGather, .dtype = DType::kI32};
  collective.parts.push_back({.input = mine.data(),
                              .output = all.data(),
                              .elements = words * world.size(),
                              .share = words});
  collective.label = "what all ranks must know";
  collective.timeout_s = kPatienceSeconds;
  world.run(collective);
  return all;
}

std::string text_of_rank_0(Communicator& world, const std::string& text) {
  return text_of_rank(world, 0, text);
}

std::string text_of_rank(Communicator& world, int rank, const std::string& text) {
  if (world.size() == 1) return text;
  int32_t size = static_cast<int32_t>(text.size());
  broadcast(world, rank, &size, 1);
  std::vector<int32_t> words((static_cast<size_t>(size) + 3) / 4 + 1);
  if (world.rank() == rank) std::memcpy(words.data(), text.data(), text.size());
  broadcast(world, rank, words.data(), static_cast<int64_t>(words.size()));
  return {reinterpret_cast<const char*>(words.data()), static_cast<size_t>(size)};
}

std::vector<std::string> texts_of_all(Communicator& world, const std::string& text) {
  if (world.size() == 1) return {text};
  const auto gather = [&](std::span<const int32_t> mine) {
    std::vector<int32_t> all(mine.size() * static_cast<size_t>(world.size()));
    Collective collective{.kind = CollectiveKind::kAllGather, .dtype = DType::kI32};
    collective.parts.push_back({.input = mine.data(),
                                .output = all.data(),
                                .elements = static_cast<int64_t>(all.size()),
                                .share = static_cast<int64_t>(mine.size())});
    collective.label = "what all ranks say";
    collective.timeout_s = kPatienceSeconds;
    world.run(collective);
    return all;
  };
  const auto own_size = static_cast<int32_t>(text.size());
  const std::vector<int32_t> sizes = gather({&own_size, 1});
  const auto longest = static_cast<size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::vector<int32_t> words(longest / 4 + 1);
  std::memcpy(words.data(), text.data(), text.size());
  const std::vector<int32_t> all = gather(words);
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data() + rank * words.size()),
                       static_cast<size_t>(sizes[rank]));
  }
  return texts;
}

void wait_for_all(Communicator& world, std::string_view why) {
  Collective barrier;
  barrier.label = why;
  barrier.timeout_s = kPatienceSeconds;
  world.run(barrier);
}

}  // namespace skein
