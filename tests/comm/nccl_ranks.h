// Ranks that are threads of one process, with a GPU each (or an emulated one).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skein/comm/nccl/nccl_communicator.h"
#include "skein/runtime/cuda/cuda_device.h"
#include "tests/comm/rank_threads.h"
#include "tests/comm/trial.h"

namespace skein::comm_test {

class DeviceMemory : public Memory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  ~DeviceMemory() override {
    for (const auto& [memory, bytes] : held_) device_.release(memory, bytes);
  }
  char* hold(const Bytes& bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    // Never null: an address is what tells a broadcast's root that it has an output.
    void* memory = device_.allocate(std::max<int64_t>(size, 1), "a test");
    held_.emplace_back(memory, size);
    device_.upload(memory, bytes.data(), size);
    return static_cast<char*>(memory);
  }
  Bytes read(const void* at, size_t bytes) override {
    Bytes host(bytes);
    device_.download(host.data(), at, static_cast<int64_t>(bytes));
    return host;
  }

 private:
  Device& device_;
  std::vector<std::pair<void*, int64_t>> held_;
};

// One rank's device and worlds.
struct Rank {
  explicit Rank(const WorldOptions& options, Sums sums = Sums::kCanonical)
      : options(options),
        device(std::make_unique<CudaDevice>(DeviceOptions{.index = options.rank}, KernelTable())),
        host(make_world(options)),
        world(make_nccl_world(
            *host, {.stream = device->stream(), .timeout_s = options.timeout_s, .sums = sums})) {}

  std::unique_ptr<Memory> memory() const { return std::make_unique<DeviceMemory>(*device); }
  int next() const { return (options.rank + 1) % options.size; }
  int previous() const { return (options.rank + options.size - 1) % options.size; }

  WorldOptions options;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> host;
  std::unique_ptr<Communicator> world;
};

class NcclRanks : public testing::Test {
 protected:
  // In the emulation there are as many devices as a test asks for.
  void run(int size, const std::function<void(const WorldOptions&)>& body) {
    setenv("CUDA_EMULATION_DEVICES", std::to_string(size).c_str(), 1);
    const int devices = num_cuda_devices();
    if (devices >= size) run_rank_threads(size, body);
    unsetenv("CUDA_EMULATION_DEVICES");
    if (devices < size) GTEST_SKIP() << size << " ranks, " << devices << " GPUs";
  }
};

// Elements of `value`, on a device.
class Message {
 public:
  static constexpr int64_t kElements = 1 << 16;
  Message(const Rank& rank, float value)
      : memory_(rank.memory()),
        data_(memory_->hold(bytes_of(std::vector<float>(kElements, value)))) {}
  Collective call(CollectiveKind kind, int peer) const {
    Collective call{.kind = kind, .peer = peer, .label = "boundary"};
    call.parts.push_back({.input = data_, .output = data_, .elements = kElements});
    return call;
  }
  void expect(int value) const {
    EXPECT_EQ(values_of<float>(memory_->read(data_, kElements * sizeof(float))),
              std::vector<float>(kElements, static_cast<float>(value)));
  }

 private:
  std::unique_ptr<Memory> memory_;
  char* data_;
};

}  // namespace skein::comm_test
