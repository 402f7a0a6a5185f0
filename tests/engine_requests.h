// What the tests of engines share: a small trained model, requests, and what an engine gives them.
#pragma once

#include <gmock/gmock.h>

#include <bit>
#include <random>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/infer/engine.h"
#include "tests/testing.h"

namespace skein {

inline const fs::path& model() {
  static const TinyJob job;
  static const fs::path run = [] {
    job.trained("model", {"run.steps=30", "precision.mode=bf16-sr"});
    return job.run("model");
  }();
  return run;
}

inline std::vector<int32_t> random_text(uint32_t seed, size_t size) {
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
inline bool operator==(const Given& a, const Given& b) {
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

class EngineTest : public testing::TestWithParam<DType> {
 protected:
  EngineTest() : source_(model()), device_(make_device({.kind = "cpu"})) {}

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

// Scored, continued greedily, and continued by draws.
inline std::vector<TextRequest> some_requests() {
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

}  // namespace skein
