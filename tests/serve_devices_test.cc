// `skein serve` with several replicas and ranks, and what it says about memory.
#include <gmock/gmock.h>

#include <future>

#include "tests/serve_client.h"

namespace skein {
namespace {

using testing::HasSubstr;

const fs::path& model() {
  static const TinyJob job;
  static const fs::path run = [] {
    job.trained("model", {"run.steps=30"});
    return job.run("model");
  }();
  return run;
}

TEST(ServeDevices, AnswersAlikeWithSeveralReplicas) {
  const ServeProcess replicas(model(), {"--replicas", "2"});
  const std::string body =
      R"({"model": "model", "prompt": ["The", "A", "x y"], "n": 2, "seed": 3, "max_tokens": 30,
          "logprobs": 1})";
  const Json expected = ServeProcess(model()).completion(body)["choices"];
  std::vector<std::future<Json>> answers;
  for (int i = 0; i < 8; ++i) {
    answers.push_back(
        std::async(std::launch::async, [&] { return replicas.completion(body)["choices"]; }));
  }
  for (auto& answer : answers) EXPECT_EQ(answer.get(), expected);
  EXPECT_EQ(replicas.ask("/reload", "{}").status, 200);
  EXPECT_EQ(replicas.completion(body)["choices"], expected);
}

TEST(ServeDevices, SaysWhatItTakesBeforeItTakesIt) {
  const Json plan = Json::parse(
      TinyJob::must({"serve", model().string(), "--plan", "--json", "--max-texts", "200"}).out);
  EXPECT_EQ(plan["max_texts"], 200);
  EXPECT_EQ(plan["max_length"], 256);
  EXPECT_EQ(plan["cached_tokens"], 200 * 256);
  int64_t sum = 0;
  for (const auto& [arena, bytes] : plan["bytes"].items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(plan["total_bytes"], sum);
  const std::string text =
      TinyJob::must({"serve", model().string(), "--plan", "--tensor", "2"}).out;
  EXPECT_THAT(text, HasSubstr(" on each of 2 devices: weights "));
  EXPECT_THAT(text, HasSubstr("up to 64 texts at a time, of up to 256 tokens"));
  const Outcome refused = run_skein({"serve", model().string(), "--cache-gb", "0"});
  EXPECT_EQ(refused.exit_code, 2);
}

}  // namespace
}  // namespace skein
