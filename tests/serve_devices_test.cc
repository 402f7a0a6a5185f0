// `skein serve` with several replicas and ranks, and what it says about memory.
#include <gmock/gmock.h>

#include <future>
#include <set>

#include "tests/serve_client.h"

namespace skein {
namespace {

using testing::HasSubstr;

const TinyJob& job() {
  static const TinyJob made;
  return made;
}
const fs::path& model() {
  static const fs::path run = [] {
    job().trained("model", {"run.steps=30"});
    return job().run("model");
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
  EXPECT_THAT(replicas.ask("/metrics").body, HasSubstr("skein_serve_requests_answered_total 8\n"));
}

// All replicas change to the new checkpoint, or none.
TEST(ServeDevices, LoadsTheNewestCheckpointInAllReplicas) {
  const fs::path run = job().run("growing");
  job().trained("growing", {"run.steps=10"});
  const ServeProcess replicas(run, {"--replicas", "3"});
  const std::string body =
      R"({"prompt": "The", "max_tokens": 40, "temperature": 0, "logprobs": 0})";
  const auto answers = [&] {
    std::vector<std::future<Json>> asked;
    for (int i = 0; i < 6; ++i) {
      asked.push_back(
          std::async(std::launch::async, [&] { return replicas.completion(body)["choices"]; }));
    }
    std::set<std::string> found;
    for (auto& answer : asked) found.insert(answer.get().dump());
    return found;
  };
  const std::set<std::string> before = answers();
  EXPECT_EQ(before.size(), 1U);
  job().trained("growing", {"run.steps=40"});
  EXPECT_EQ(replicas.ask("/reload", "{}").status, 200);
  const std::set<std::string> expected = {ServeProcess(run).completion(body)["choices"].dump()};
  EXPECT_EQ(answers(), expected);
  EXPECT_NE(before, expected);
  fs::rename(run, job().run("moved"));
  EXPECT_EQ(replicas.ask("/reload", "{}").status, 500);
  EXPECT_EQ(answers(), expected);
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
  // Keys and values of two heads, on two ranks and, each twice, on four.
  const auto cache = [&](const char* tensor) -> int64_t {
    const Arguments arguments = {"serve",    model().string(), "--plan",      "--json",
                                 "--tensor", tensor,           "--max-texts", "200"};
    return Json::parse(TinyJob::must(arguments).out)["bytes"]["cache"];
  };
  EXPECT_EQ(cache("1"), plan["bytes"]["cache"]);
  EXPECT_EQ(2 * cache("2"), cache("1"));
  EXPECT_EQ(cache("4"), cache("2"));
  const std::string text =
      TinyJob::must({"serve", model().string(), "--plan", "--tensor", "2", "--replicas", "3"}).out;
  EXPECT_THAT(text, HasSubstr(" on each of 6 devices: weights "));
  EXPECT_THAT(text, HasSubstr("up to 64 texts at a time, of up to 256 tokens"));
  const Outcome refused = run_skein({"serve", model().string(), "--cache-gb", "0"});
  EXPECT_EQ(refused.exit_code, 2);
}

}  // namespace
}  // namespace skein
