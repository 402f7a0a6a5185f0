// Engines whose model several ranks split, and several engines that share requests, give what one
// gives, and take the memory that is planned.
#include <mutex>
#include <set>
#include <thread>

#include "skein/infer/engine_memory.h"
#include "skein/infer/engine_replicas.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "tests/engine_requests.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using testing::HasSubstr;

class EngineRanks : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Precisions, EngineRanks, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(EngineRanks, ReplicasShareTheRequests) {
  const std::vector<TextRequest> requests = some_requests();
  const std::vector<Given> expected = run(requests, {.max_sequences = 16});
  EngineOptions options{.compute_dtype = GetParam(), .max_positions = 200};
  std::set<int64_t> made;
  std::mutex mutex;
  options.make_device = [&](int64_t index) {
    const std::lock_guard lock(mutex);
    made.insert(index);
    return make_device({.kind = "cpu", .threads = 1});
  };
  EngineReplicas replicas(source_, options, 3);
  EXPECT_EQ(made, (std::set<int64_t>{0, 1, 2}));
  std::vector<std::vector<int32_t>> tokens(requests.size());
  std::set<std::thread::id> threads;
  std::vector<TextRequest> asked = requests;
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i].on_scores = [](std::span<const TokenScore>) {};
    asked[i].on_token = [&, i](int32_t token, const TokenScore&) {
      tokens[i].push_back(token);
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      return true;
    };
  }
  replicas.run(asked, {});
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(tokens[i], expected[i].tokens) << i;
  EXPECT_EQ(threads.size(), 3U);

  // What one throws ends the others.
  for (TextRequest& request : asked) {
    if (request.max_new_tokens > 0) {
      request.on_token = [](int32_t, const TokenScore&) -> bool {
        throw std::runtime_error("full");
      };
    }
  }
  EXPECT_THROW(replicas.run(asked, {}), std::runtime_error);
}

// Two ranks, and four that share two key-value heads: what one rank gives, to rounding; and the
// same bits in any company.
TEST_P(EngineRanks, SeveralRanksGiveWhatOneGives) {
  const std::vector<TextRequest> requests = some_requests();
  const std::vector<Given> expected = run(requests, {.max_sequences = 16});
  for (const int64_t tensor : {2, 4}) {
    EngineOptions options{.max_sequences = 16, .tensor = tensor};
    options.make_device = [](int64_t) { return make_device({.kind = "cpu", .threads = 1}); };
    const std::vector<Given> given = run(requests, options);
    const double tolerance = GetParam() == DType::kF32 ? 1e-4 : 0.05;
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(given[i].scores.size(), expected[i].scores.size());
      for (size_t k = 0; k < given[i].scores.size(); ++k) {
        EXPECT_NEAR(given[i].scores[k].logprob, expected[i].scores[k].logprob, tolerance)
            << tensor << " ranks, text " << i << ", token " << k;
      }
    }
    options.max_sequences = 3;
    options.max_tokens = 20;
    const std::vector<Given> otherwise = run(requests, options);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_TRUE(otherwise[i] == given[i]) << i;
  }
}

TEST_P(EngineRanks, SaysWhatCannotSplitTheModel) {
  EngineOptions options{.max_positions = 50, .tensor = 3};
  options.make_device = [](int64_t) { return make_device({.kind = "cpu", .threads = 1}); };
  EXPECT_THAT(test::error_of([&] { TextEngine(source_, *device_, options); }),
              HasSubstr("cannot split the model's"));
  // What one rank throws is thrown, and the others do not wait.
  options.tensor = 2;
  options.make_device = [](int64_t) -> std::unique_ptr<Device> {
    fail(ErrorCode::kUnsupported, "no second device");
  };
  EXPECT_THAT(test::error_of([&] { TextEngine(source_, *device_, options); }),
              HasSubstr("no second device"));
}

// Nobody has to meet.
TEST_P(EngineRanks, OfOneRankNeedsNoTemporaryFolder) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nonexistent", 1);
  EngineOptions options{.compute_dtype = GetParam(), .max_positions = 50, .max_sequences = 2};
  EXPECT_EQ(test::error_of([&] { TextEngine(source_, *device_, options); }), "");
  options.tensor = 2;
  options.make_device = [](int64_t) { return make_device({.kind = "cpu", .threads = 1}); };
  EXPECT_THAT(test::error_of([&] { TextEngine(source_, *device_, options); }),
              HasSubstr("cannot make the folder"));
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

class CountingDevice : public CpuDevice {
 public:
  CountingDevice() : CpuDevice(1, find_backend("cpu").kernels()) {}
  void* allocate(int64_t bytes, const std::string& what) override {
    num_allocated += bytes;
    return CpuDevice::allocate(bytes, what);
  }

  int64_t num_allocated = 0;
};

TEST_P(EngineRanks, AllocatesWhatItPlans) {
  EngineOptions options{.compute_dtype = GetParam(), .max_positions = 100, .max_sequences = 4};
  const ServingLayout layout = engine_layout(source_.config(), options);
  EXPECT_EQ(layout.num_pages, 4 * 7);
  for (const int64_t tensor : {2, 4}) {
    EngineOptions split = options;
    split.tensor = tensor;
    std::vector<CountingDevice*> made;
    std::mutex mutex;
    split.make_device = [&](int64_t) {
      auto other = std::make_unique<CountingDevice>();
      const std::lock_guard lock(mutex);
      made.push_back(other.get());
      return other;
    };
    CountingDevice first;
    const EngineMemory memory = engine_memory(source_.config(), split, first.kernels());
    const TextEngine engine(source_, first, split);
    EXPECT_EQ(first.num_allocated, memory.total_bytes());
    ASSERT_EQ(std::ssize(made), tensor - 1);
    for (const CountingDevice* other : made) {
      EXPECT_EQ(other->num_allocated, memory.total_bytes());
    }
  }
  CountingDevice device;
  const EngineMemory memory = engine_memory(source_.config(), options, device.kernels());
  const TextEngine engine(source_, device, options);
  EXPECT_EQ(device.num_allocated, memory.total_bytes());
  EXPECT_EQ(engine.programs().arena_bytes, memory.arena_bytes);
  EXPECT_EQ(memory.arena_bytes[static_cast<size_t>(Arena::kCache)],
            layout.num_pages * layout.page_bytes(source_.config(), GetParam()));
  options.cache_bytes = 10 * layout.page_bytes(source_.config(), GetParam());
  EXPECT_EQ(engine_layout(source_.config(), options).num_pages, 10);
}

}  // namespace
}  // namespace skein
