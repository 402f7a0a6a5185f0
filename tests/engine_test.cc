// Texts are read and continued with the same bits in any company, in any pieces, with shared pages
// or none, and with the cache as without it.
#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "skein/backends/backend.h"
#include "skein/infer/engine_memory.h"
#include "skein/infer/engine_replicas.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "tests/error_of.h"
#include "tests/testing.h"

namespace skein {
namespace {

using testing::HasSubstr;

const fs::path& model() {
  static const TinyJob job;
  static const fs::path run = [] {
    job.trained("model", {"run.steps=30", "precision.mode=bf16-sr"});
    return job.run("model");
  }();
  return run;
}

std::vector<int32_t> random_text(uint32_t seed, size_t size) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(size);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 320);
  return tokens;
}

// What an engine gives each text.
struct Given {
  std::vector<TokenScore> scores, scores_of_new;
  std::vector<int32_t> tokens;
};
bool operator==(const Given& a, const Given& b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  const auto same = [&](const TokenScore& x, const TokenScore& y) {
    return same_bits(x.logprob, y.logprob) && same_bits(x.best.logprob, y.best.logprob) &&
           x.best.token == y.best.token;
  };
  const auto all_same = [&](const std::vector<TokenScore>& x, const std::vector<TokenScore>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  return a.tokens == b.tokens && all_same(a.scores, b.scores) &&
         all_same(a.scores_of_new, b.scores_of_new);
}

class Engine : public testing::TestWithParam<DType> {
 protected:
  Engine() : source_(model()), device_(make_device({.kind = "cpu"})) {}

  std::vector<Given> run(const std::vector<TextRequest>& requests, EngineOptions options) {
    options.compute_dtype = GetParam();
    options.max_positions = 200;
    TextEngine engine(source_, *device_, options);
    std::vector<Given> given(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      TextRequest request = requests[i];
      request.on_scores = [&given, i](std::span<const TokenScore> scores) {
        given[i].scores.assign(scores.begin(), scores.end());
      };
      request.on_token = [&given, i](int32_t token, const TokenScore& score) {
        given[i].tokens.push_back(token);
        given[i].scores_of_new.push_back(score);
        return true;
      };
      engine.add(std::move(request));
    }
    engine.run_all();
    counts_ = engine.counts();
    EXPECT_EQ(engine.num_running(), 0);
    return given;
  }
  std::vector<Given> run_alone(const std::vector<TextRequest>& requests) {
    std::vector<Given> given;
    for (const TextRequest& request : requests) {
      given.push_back(run({request}, {.max_sequences = 1}).at(0));
    }
    return given;
  }

  const ModelSource source_;
  const std::unique_ptr<Device> device_;
  TextEngine::Counts counts_;
};
INSTANTIATE_TEST_SUITE_P(Precisions, Engine, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

// Scored, continued greedily, and continued by draws.
std::vector<TextRequest> some_requests() {
  std::vector<TextRequest> requests;
  for (uint32_t i = 0; i < 14; ++i) {
    TextRequest& request = requests.emplace_back();
    request.tokens = random_text(i, 1 + i * 37 % 130);
    if (i % 3 != 0 && request.tokens.size() > 4) request.score_from = 1 + i % 4;
    if (i % 3 != 1) request.max_new_tokens = 1 + i * 7 % 40;
    if (i % 2 == 1) request.sampling = {.temperature = 0.9, .top_p = 0.9, .seed = i};
  }
  return requests;
}

TEST_P(Engine, GivesATextTheSameBitsInAnyCompany) {
  const std::vector<TextRequest> requests = some_requests();
  const std::vector<Given> alone = run_alone(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(std::ssize(alone[i].tokens), requests[i].max_new_tokens) << i;
    if (requests[i].score_from == 0) continue;
    EXPECT_EQ(alone[i].scores.size(), requests[i].tokens.size() - requests[i].score_from) << i;
  }
  for (const EngineOptions& options :
       {EngineOptions{.max_sequences = 16}, EngineOptions{.max_sequences = 5, .max_tokens = 7},
        EngineOptions{.max_sequences = 3, .max_tokens = 48},
        EngineOptions{.max_sequences = 8, .cache_bytes = 1, .max_tokens = 64}}) {
    const std::vector<Given> given = run(requests, options);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(given[i] == alone[i]) << i << " of " << options.max_sequences << " sequences";
    }
  }
}

// What a text was continued with has the log-probabilities that it has when it is read at once.
TEST_P(Engine, ContinuesAsItReads) {
  TextRequest request{.tokens = random_text(1, 21), .max_new_tokens = 60};
  const Given continued = run({request}, {.max_sequences = 1}).at(0);
  TextRequest whole{.tokens = request.tokens, .score_from = std::ssize(request.tokens)};
  whole.tokens.insert(whole.tokens.end(), continued.tokens.begin(), continued.tokens.end());
  const Given read = run({whole}, {.max_sequences = 1}).at(0);
  ASSERT_EQ(read.scores.size(), 60U);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(read.scores[i].best.token, continued.tokens[i]) << i;
}

TEST_P(Engine, ReadsWhatTextsBeginWithOnce) {
  std::vector<TextRequest> requests;
  const std::vector<int32_t> shared = random_text(7, 100);
  for (uint32_t i = 0; i < 6; ++i) {
    TextRequest& request = requests.emplace_back();
    request.tokens = shared;
    const std::vector<int32_t> own = random_text(20 + i, 9);
    request.tokens.insert(request.tokens.end(), own.begin(), own.end());
    request.score_from = 100;
  }
  const std::vector<Given> alone = run_alone(requests);
  const std::vector<Given> together = run(requests, {.max_sequences = 6});
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_TRUE(together[i] == alone[i]) << i;
  // Of the 99 positions before the first that is asked for, the full pages of 16.
  EXPECT_EQ(counts_.tokens_shared, 5 * 96);
  EXPECT_EQ(counts_.tokens_read, 6 * 108 - 5 * 96);
}

TEST_P(Engine, ReplicasShareTheRequests) {
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
TEST_P(Engine, SeveralRanksGiveWhatOneGives) {
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

TEST_P(Engine, SaysWhatCannotSplitTheModel) {
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
TEST_P(Engine, OfOneRankNeedsNoTemporaryFolder) {
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

TEST_P(Engine, AllocatesWhatItPlans) {
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

TEST_P(Engine, RefusesWhatCannotBeRead) {
  TextEngine engine(source_, *device_,
                    {.compute_dtype = GetParam(), .max_positions = 50, .max_sequences = 2});
  const auto refusal = [&](TextRequest request) -> std::string {
    try {
      engine.add(std::move(request));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalid);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({}), HasSubstr("a text is empty"));
  const auto keep = [](int32_t, const TokenScore&) { return true; };
  EXPECT_THAT(refusal({.tokens = random_text(1, 40), .max_new_tokens = 11, .on_token = keep}),
              HasSubstr("has 40 tokens and may get 11 more: expected at most 50"));
  EXPECT_THAT(refusal({.tokens = {5, 320}}), HasSubstr("token id 320: expected 0 to 319"));
  EXPECT_THAT(refusal({.tokens = {-1}}), HasSubstr("token id -1"));
  EXPECT_THAT(refusal({.tokens = {1, 2}, .score_from = 3}), HasSubstr("expected 0 to 2"));
  EXPECT_THROW(engine.add({.tokens = {1, 2}, .max_new_tokens = -1}), Error);
  EXPECT_THROW(engine.add({.tokens = {1, 2}, .max_new_tokens = 1}), Error);  // nobody takes it
  EXPECT_THROW(engine.add({.tokens = {1}, .max_new_tokens = INT64_MAX, .on_token = keep}), Error);
  EXPECT_FALSE(engine.step());
  const auto refused = [&](EngineOptions options) {
    EXPECT_THROW(engine_layout(source_.config(), options), Error);
  };
  refused({});
  refused({.max_positions = 257});
  refused({.max_positions = 10, .max_sequences = 0});
  refused({.max_positions = 10, .max_tokens = 0});
}

// What is said of a new token is what a reader says of it, and the likeliest ones are in order.
TEST_P(Engine, SaysTheLogProbabilitiesOfNewTokens) {
  TextRequest request{.tokens = random_text(5, 20), .num_top = 4, .max_new_tokens = 30};
  request.sampling = {.temperature = 1, .seed = 3};
  const Given continued = run({request}, {}).at(0);
  ASSERT_EQ(continued.scores_of_new.size(), 30U);
  TextRequest whole{.tokens = random_text(5, 20), .score_from = 20, .num_top = 1};
  whole.tokens.insert(whole.tokens.end(), continued.tokens.begin(), continued.tokens.end());
  const Given read = run({whole}, {}).at(0);
  ASSERT_EQ(read.scores.size(), 30U);
  for (size_t i = 0; i < 30; ++i) {
    const TokenScore &made = continued.scores_of_new[i], &scored = read.scores[i];
    EXPECT_EQ(made.logprob, scored.logprob) << i;
    EXPECT_EQ(made.best.logprob, scored.best.logprob) << i;
    ASSERT_EQ(made.top.size(), 4U);
    EXPECT_EQ(made.top[0].token, made.best.token);
    EXPECT_EQ(made.top[0].logprob, made.best.logprob);
    EXPECT_GE(made.top[0].logprob, made.top[1].logprob);
    EXPECT_GE(made.top[2].logprob, made.top[3].logprob);
    for (const TokenLogprob& top : made.top) {
      if (top.token == continued.tokens[i]) {
        EXPECT_EQ(top.logprob, made.logprob);
      }
    }
  }
}

// The others have what they would have had.
TEST_P(Engine, CancelsTextsThatWaitOrAreUnderWay) {
  TextEngine engine(source_, *device_,
                    {.compute_dtype = GetParam(), .max_positions = 200, .max_sequences = 2});
  std::vector<int> num_tokens(4, 0);
  std::vector<bool> has_ended(4, false);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < 4; ++i) {
    numbers.push_back(engine.add({.tokens = random_text(static_cast<uint32_t>(i), 30),
                                  .max_new_tokens = 20,
                                  .on_token =
                                      [&num_tokens, i](int32_t, const TokenScore&) {
                                        ++num_tokens[i];
                                        return true;
                                      },
                                  .on_end = [&has_ended, i] { has_ended[i] = true; }}));
  }
  while (num_tokens[0] < 5) engine.step();
  engine.cancel(numbers[0]);
  engine.cancel(numbers[2]);
  engine.cancel(numbers[0]);
  engine.run_all();
  EXPECT_EQ(num_tokens, (std::vector<int>{5, 20, 0, 20}));
  EXPECT_EQ(has_ended, (std::vector<bool>{false, true, false, true}));
}

// A text whose callback throws has ended; the others have what they would have had.
TEST_P(Engine, OutlivesACallbackThatThrows) {
  TextEngine engine(source_, *device_,
                    {.compute_dtype = GetParam(), .max_positions = 200, .max_sequences = 4});
  std::vector<int32_t> tokens;
  int num_ended = 0;
  engine.add({.tokens = random_text(3, 30),
              .max_new_tokens = 20,
              .on_token = [](int32_t, const TokenScore&) -> bool {
                throw std::runtime_error("the pipe is closed");
              },
              .on_end = [&] { ++num_ended; }});
  engine.add({.tokens = random_text(4, 30),
              .max_new_tokens = 20,
              .on_token =
                  [&](int32_t token, const TokenScore&) {
                    tokens.push_back(token);
                    return true;
                  },
              .on_end = [&] { ++num_ended; }});
  EXPECT_THROW(engine.run_all(), std::runtime_error);
  engine.run_all();
  EXPECT_EQ(num_ended, 2);
  EXPECT_EQ(tokens.size(), 20U);
  TextRequest alone{.tokens = random_text(4, 30), .max_new_tokens = 20};
  EXPECT_EQ(run({alone}, {.max_sequences = 1}).at(0).tokens, tokens);
}

}  // namespace
}  // namespace skein
