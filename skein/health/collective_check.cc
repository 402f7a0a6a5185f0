#include "skein/health/collective_check.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/runtime/device_buffer.h"

namespace skein {
namespace {

constexpr int kRounds = 5;

float number(int rank, int64_t element) {
  return static_cast<float>((element * 5 + rank * 3 + element / 7) % 8);
}

float expected(CollectiveKind kind, int size, int64_t share, int64_t element) {
  if (kind == CollectiveKind::kAllGather) {
    return number(static_cast<int>(element / share), element % share);
  }
  float sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += number(rank, element);
  return sum;
}

}  // namespace

CheckResult check_collective(Device& device, Communicator& world, CollectiveKind kind,
                             int64_t bytes) {
  const int size = world.size();
  const int64_t share = std::max<int64_t>(1, bytes / 4 / size);
  const int64_t elements = share * size;
  const bool gathers = kind == CollectiveKind::kAllGather;
  const bool scatters = kind == CollectiveKind::kReduceScatter;
  std::vector<float> input(static_cast<size_t>(gathers ? share : elements));
  std::vector<float> output(static_cast<size_t>(scatters ? share : elements));
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = number(world.rank(), static_cast<int64_t>(i));
  const auto input_bytes = static_cast<int64_t>(4 * input.size());
  const auto output_bytes = static_cast<int64_t>(4 * output.size());
  const std::string what = "the check of collectives";
  const DeviceBuffer from(device, input_bytes, what), to(device, output_bytes, what);
  device.upload(from.data(), input.data(), input_bytes);
  Collective call{.kind = kind, .dtype = DType::kF32};
  call.parts.push_back({.input = from.data(),
                        .output = to.data(),
                        .elements = elements,
                        .share = gathers || scatters ? share : 0});
  call.label = "the check of this machine";
  const DeviceBuffer scratch(device, collective_scratch_bytes(call, size), what);
  call.scratch = scratch.data();

  CheckResult result;
  const auto sent = static_cast<double>(collective_sent_bytes(call, world.rank(), size));
  const int64_t first = scatters ? world.rank() * share : 0;
  for (int round = 0; round < kRounds; ++round) {
    device.fill_zero(to.data(), output_bytes);
    device.synchronize();
    const auto start = Clock::now();
    world.run(call);
    device.synchronize();
    world.check(call);
    result.rate = std::max(result.rate, sent / seconds_since(start));
    device.download(output.data(), to.data(), output_bytes);
    for (size_t i = 0; i < output.size(); ++i) {
      const int64_t element = first + static_cast<int64_t>(i);
      const float answer = expected(kind, size, share, element);
      if (output[i] == answer || result.health == Health::kSick) continue;
      result.health = Health::kSick;
      result.found = fmt::format("{} at element {} of {}", output[i], element, elements);
      result.expected = fmt::format("{}", answer);
      result.advice = "The network or a machine on it changes bytes";
    }
  }
  world.run({});  // who leaves before others have checked would be a lost peer to them
  result.unit = "B/s";
  if (result.health == Health::kWell) {
    result.found = fmt::format("sent by a rank of {}, right to the bit", size);
  } else {
    result.rate = 0;
  }
  return result;
}

}  // namespace skein
