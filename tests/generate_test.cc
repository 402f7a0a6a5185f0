// Prompts that a model cannot go on with are refused before anything is printed.
#include "tests/testing.h"

namespace skein {
namespace {

TEST(Generate, RefusesPromptsThatAreTooLongOrEmpty) {
  const TinyJob job;
  const fs::path tokenizer = job.folder / "without_bos";
  TinyJob::must({"data", "tokenizer", "--kind", "byte-level", "--vocab-size", "320", "--out",
                 tokenizer.string(), job.corpus().string()});
  job.trained("run", {"run.steps=1", "data.tokenizer=" + tokenizer.string()});
  const auto generate = [&](const std::string& prompt) {
    return run_skein({"generate", "--model", job.run("run").string(), "--prompt", prompt,
                      "--temperature", "0", "--max-tokens", "5"});
  };
  expect_refused(generate(std::string(3000, '?')), 2,
                 {"--prompt has", "256 at most", "a prompt of at most 255 tokens"});
  expect_refused(generate(""), 2, {"--prompt is empty", "no token for the beginning"});
  const Outcome good = generate("the");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_TRUE(good.out.starts_with("the")) << good.out;
  ::setenv("SKEIN_CPU", "avx1024", 1);
  expect_refused(generate("the"), 2, {"SKEIN_CPU is \"avx1024\"", "this one has"});
  ::unsetenv("SKEIN_CPU");
}

// As models of Qwen have them, and as tensor ranks ask for.
TEST(Generate, NeverDrawsARowThatOnlyPadsTheVocabulary) {
  const TinyJob job;
  const fs::path tokenizer = job.folder / "small";
  TinyJob::must({"data", "tokenizer", "--vocab-size", "300", "--out", tokenizer.string(),
                 job.corpus().string()});
  job.trained("padded",
              {"run.steps=1", "data.tokenizer=" + tokenizer.string(), "model.vocab_size=1200"});
  for (int seed = 1; seed <= 5; ++seed) {  // three rows of four are padding
    const Outcome outcome = run_skein({"generate", "--model", job.run("padded").string(),
                                       "--prompt", "the", "--temperature", "1.5", "--top-p", "1",
                                       "--seed", fmt::format("{}", seed), "--max-tokens", "20"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

}  // namespace
}  // namespace skein
