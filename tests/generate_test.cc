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

}  // namespace
}  // namespace skein
