#include "skein/runtime/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "skein/base/error.h"
#include "skein/ops/ops.h"
#include "skein/runtime/executor.h"
#include "tests/ir/testing_ops.h"

namespace skein {
namespace {

std::unique_ptr<Device> gpu() {
  return std::make_unique<CudaDevice>(DeviceOptions{}, cuda_kernels());
}

std::vector<int32_t> counting(size_t size, int32_t first = 0) {
  std::vector<int32_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}
int64_t bytes_of(const std::vector<int32_t>& numbers) {
  return static_cast<int64_t>(numbers.size() * sizeof(int32_t));
}

TEST(CudaDevice, MemoryBeginsAtZeroAndKeepsWhatIsUploaded) {
  const auto device = gpu();
  // Larger than the ring that uploads pass through.
  std::vector<int32_t> numbers = counting(40 << 20), back(numbers.size(), -1);
  void* memory = device->allocate(bytes_of(numbers), "a test");
  device->download(back.data(), memory, bytes_of(back));
  EXPECT_EQ(back, std::vector<int32_t>(numbers.size(), 0));
  device->upload(memory, numbers.data(), bytes_of(numbers));
  device->download(back.data(), memory, bytes_of(back));
  EXPECT_EQ(back, numbers);
  device->release(memory, bytes_of(numbers));
}

TEST(CudaDevice, UploadedMemoryIsFreeAtOnce) {
  const auto device = gpu();
  const int64_t count = 3000;
  std::vector<int32_t> numbers(1000), back(1000);
  void* memory = device->allocate(count * bytes_of(numbers), "a test");
  for (int64_t i = 0; i < count; ++i) {
    numbers = counting(numbers.size(), static_cast<int32_t>(i));
    device->upload(static_cast<char*>(memory) + i * bytes_of(numbers), numbers.data(),
                   bytes_of(numbers));
  }
  for (int64_t i = 0; i < count; i += 37) {
    device->download(back.data(), static_cast<char*>(memory) + i * bytes_of(back), bytes_of(back));
    EXPECT_EQ(back, counting(back.size(), static_cast<int32_t>(i))) << i;
  }
  device->release(memory, count * bytes_of(numbers));
}

TEST(CudaDevice, SeveralThreadsReadAtOnce) {
  const auto device = gpu();
  const std::vector<int32_t> numbers = counting(5 << 20);
  void* memory = device->allocate(bytes_of(numbers), "a test");
  device->upload(memory, numbers.data(), bytes_of(numbers));
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> read(3, std::vector<int32_t>(numbers.size()));
  for (auto& back : read) {
    threads.emplace_back([&] { device->download(back.data(), memory, bytes_of(back)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& back : read) EXPECT_EQ(back, numbers);
  device->release(memory, bytes_of(numbers));
}

TEST(CudaDevice, ResultsComeBehindTheHost) {
  const auto device = gpu();
  void* memory = device->allocate(4, "a test");
  auto* results = static_cast<int32_t*>(device->allocate_on_host(2 * sizeof(int32_t), "a test"));
  int64_t marks[2];
  for (int32_t i = 0; i < 2; ++i) {
    const int32_t value = 10 + i;
    device->upload(memory, &value, 4);
    device->download_later(results + i, memory, 4);
    marks[i] = device->record_event();
  }
  device->wait(marks[0]);
  EXPECT_EQ(results[0], 10);
  device->wait(marks[1]);
  EXPECT_EQ(results[1], 11);
  device->release_on_host(results, 2 * sizeof(int32_t));
  device->release(memory, 4);
}

TEST(CudaDevice, TellsWhenAnEventCompletedThatNobodyWaitedFor) {
  const auto device = gpu();
  void* memory = device->allocate(1 << 20, "a test");
  device->fill_zero(memory, 1 << 20);
  const Clock::time_point begun = Clock::now();
  const int64_t first = device->record_event();
  device->synchronize();
  const Clock::time_point done = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  device->fill_zero(memory, 1 << 20);
  const int64_t second = device->record_event();
  device->synchronize();
  const Clock::time_point all_done = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto slack = std::chrono::milliseconds(200);  // of a busy machine
  const Clock::time_point first_at = device->wait(first), second_at = device->wait(second);
  EXPECT_GE(first_at, begun - slack);
  EXPECT_LE(first_at, done + slack);
  EXPECT_GE(second_at, done + std::chrono::milliseconds(500) - slack);
  EXPECT_LE(second_at, all_done + slack);
  device->release(memory, 1 << 20);
}

TEST(CudaDevice, ReplaysWhatItRecorded) {
  const auto device = gpu();
  const int64_t n = 1000;
  std::vector<float> ones(n, 1.0f), sum(n);
  auto* memory = static_cast<float*>(device->allocate(2 * n * 4, "a test"));
  device->upload(memory, ones.data(), n * 4);
  const auto vector = [&](int64_t at) {
    return View::contiguous(memory + at * n, DType::kF32, {n});
  };
  const KernelCall call{
      .inputs = {vector(0), vector(1)}, .outputs = {vector(1)}, .stream = device->stream()};
  const auto recording = device->record([&] { device->kernels().at("add").run(call); });
  ASSERT_NE(recording, nullptr);
  device->download(sum.data(), memory + n, n * 4);
  EXPECT_EQ(sum[0], 0) << "recording ran the step";
  for (int i = 0; i < 3; ++i) recording->replay();
  device->download(sum.data(), memory + n, n * 4);
  EXPECT_EQ(sum, std::vector<float>(n, 3.0f));
  device->release(memory, 2 * n * 4);
}

int num_started = 0;  // kernels of the test below, by the host

// y += x, twice where sequences are one document each.
void plus_by_facts(const KernelCall& call) {
  static const KernelTable kernels = cuda_kernels();
  ++num_started;
  for (int i = 0; i < (call.facts->one_document_each ? 2 : 1); ++i) kernels.at("add").run(call);
}

TEST(CudaDevice, ProgramsAreRecordedForEachOfTheFacts) {
  CudaDevice device(DeviceOptions{}, {{"plus", {.run = plus_by_facts}}});
  ProgramSet set;
  set.mesh = Mesh::standard(1, 1, 1, 1);
  set.arena_bytes = {256, 0, 0, 256, 0, 256};
  const Operand x{Arena::kInputs, 0, DType::kF32, {4}, 4};
  const Operand y{Arena::kInputs, 64, DType::kF32, {4}, 4};
  Instruction instruction;
  instruction.op = &testing_ops::kPlus;
  instruction.inputs = {x, y};
  instruction.outputs = {y};
  set.programs = {{"forward", {instruction}}};
  set.named = {{"x", x}, {"y", y}};
  Executor executor(device, set);
  const std::array<float, 4> ones{1, 1, 1, 1};
  executor.upload("x", ones.data(), sizeof(ones));
  num_started = 0;
  float expected = 0;
  for (const bool whole : {false, true, false, false, true, true, true, false}) {
    executor.set_facts({.one_document_each = whole});
    executor.run("forward");
    expected += whole ? 2 : 1;
    std::array<float, 4> sums{};
    executor.download("y", sums.data(), sizeof(sums));
    EXPECT_EQ(sums[0], expected);
  }
  EXPECT_EQ(num_started, 4) << "once alone and once recorded, for each of the facts";
}

TEST(CudaDevice, WaitingCannotBeRecorded) {
  const auto device = gpu();
  EXPECT_THROW(device->record([&] { device->synchronize(); }), Error);
  device->synchronize();  // and goes on
}

TEST(CudaDevice, RecordsNothingWhereGraphsAreOff) {
  const auto device = gpu();
  ::setenv("SKEIN_GRAPHS", "off", 1);
  EXPECT_EQ(device->record([] { ADD_FAILURE() << "a step was recorded"; }), nullptr);
  ::unsetenv("SKEIN_GRAPHS");
  EXPECT_NE(device->record([] {}), nullptr);
}

TEST(CudaDevice, SaysHowMuchMemoryIsLeft) {
  const auto device = gpu();
  try {
    device->allocate(int64_t{1} << 50, "the arena 'weights'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoSpace);
    EXPECT_NE(std::string(error.what()).find("the arena 'weights' needs"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("left"), std::string::npos) << error.what();
  }
}

TEST(CudaDevice, NamesTheGpuThatIsNotThere) {
  try {
    CudaDevice device({.index = 1000}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("needs GPU 1000"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace skein
