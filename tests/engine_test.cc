// Texts are read and continued with the same bits in any company, in any pieces, with shared pages
// or none, and with the cache as without it.
#include "tests/engine_requests.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using testing::HasSubstr;

class Engine : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Precisions, Engine, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

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

// Of texts whose every token is scored, what they begin with is read once too, and its scores are
// those of a text alone; with lists of the likeliest all is read.
TEST_P(Engine, ScoresWhatTextsBeginWithOnce) {
  std::vector<TextRequest> requests;
  const std::vector<int32_t> shared = random_text(7, 100);
  for (uint32_t i = 0; i < 8; ++i) {
    TextRequest& request = requests.emplace_back();
    request.tokens = shared;
    const std::vector<int32_t> own = random_text(20 + i, i == 7 ? 0 : 9);
    request.tokens.insert(request.tokens.end(), own.begin(), own.end());
    request.score_from = 1 + i % 3;
    if (i == 5) request.max_new_tokens = 4;
    if (i == 6) request.tokens.resize(96);  // of which all is known
  }
  const std::vector<Given> alone = run_alone(requests);
  const std::vector<Given> together = run(requests, {.max_sequences = 6});
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(alone[i].scores.size(), requests[i].tokens.size() - requests[i].score_from) << i;
    EXPECT_TRUE(together[i] == alone[i]) << i;
  }
  EXPECT_GE(counts_.tokens_shared, 6 * 80);
  for (TextRequest& request : requests) request.num_top = 2;
  EXPECT_TRUE(run(requests, {.max_sequences = 6}) == run_alone(requests));
  EXPECT_EQ(counts_.tokens_shared, 0);
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
