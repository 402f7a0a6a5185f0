// Prompts that a model cannot go on with are refused before anything is printed.
#include <gmock/gmock.h>

#include "skein/base/text/json.h"
#include "tests/testing.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

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

// A folder says in generation_config.json what ends a text and how to draw, and an export of what
// began there keeps it.
TEST(Generate, TakesItsDefaultsFromTheFolderAndAnExportKeepsThem) {
  const TinyJob job;
  job.trained("first", {"run.steps=1"});
  const fs::path model = job.folder / "hf", out = job.folder / "out";
  TinyJob::must({"checkpoint", "export", job.run("first").string(), "--out", model.string()});
  const std::string drawing = R"({"eos_token_id": [2, 7], "do_sample": true, "temperature": 0.6,
                                  "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.1})";
  write_file_atomic(model / "generation_config.json", drawing);
  const auto generate = [&](const fs::path& of, const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"generate", "--model",      of.string(), "--prompt",
                                          "the",      "--max-tokens", "4"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run_skein(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(generate(model, {}), HasSubstr("--temperature 0.6 --top-p 0.9 --top-k 20 of"));
  EXPECT_THAT(generate(model, {}), HasSubstr("not used: repetition_penalty"));
  EXPECT_THAT(generate(model, {"--temperature", "0"}), Not(HasSubstr("--top-p")));

  job.trained("second", {"run.steps=1", "model.init_from=" + model.string()});
  TinyJob::must({"checkpoint", "export", job.run("second").string(), "--out", out.string()});
  EXPECT_EQ(read_file(out / "generation_config.json"), drawing);
  EXPECT_EQ(read_json((out / "config.json").string())["eos_token_id"], 2);

  // The run has its own copy, beside its checkpoints where they lie elsewhere.
  const fs::path elsewhere = job.folder / "elsewhere", moved = job.folder / "moved";
  job.trained("third", {"run.steps=1", "model.init_from=" + model.string(),
                        "checkpoint.dir=" + elsewhere.string()});
  fs::rename(model, moved);
  TinyJob::must({"train", (job.run("second") / "config.toml").string(), "--set", "run.steps=2"});
  for (const fs::path& source : {job.run("second"), elsewhere}) {
    const fs::path again = job.folder / ("of " + source.filename().string());
    TinyJob::must({"checkpoint", "export", source.string(), "--out", again.string()});
    EXPECT_EQ(read_file(again / "generation_config.json"), drawing);
  }
  fs::rename(moved, model);

  write_file_atomic(model / "generation_config.json", R"({"temperature": "warm"})");
  expect_refused(run_skein({"generate", "--model", model.string(), "--prompt", "the"}), 1,
                 {"generation_config.json", "temperature is \"warm\"", "expected a number"});
}

// A prompt that spells a special token is that token, unless its characters are asked for.
TEST(Generate, PromptsMaySpellSpecialTokens) {
  const TinyJob job;
  const fs::path tokenizer = job.folder / "bytes";
  TinyJob::must({"data", "tokenizer", "--kind", "byte-level", "--vocab-size", "320", "--out",
                 tokenizer.string(), job.corpus().string()});
  job.trained("run", {"run.steps=1", "data.tokenizer=" + tokenizer.string()});
  const auto most = [&](const std::string& special) {  // tokens of the prompt, as a refusal says
    std::string prompt;
    for (int i = 0; i < 300; ++i) prompt += "<|endoftext|>";
    return run_skein({"generate", "--model", job.run("run").string(), "--prompt", prompt,
                      "--special-tokens", special})
        .err;
  };
  EXPECT_THAT(most("parse"), HasSubstr("--prompt has 300 tokens"));
  EXPECT_THAT(most("text"), Not(HasSubstr("--prompt has 300 tokens")));
}

// data.special_tokens: the start of a run says that texts spell some, and "parse" makes them one.
TEST(SpecialTokens, OfTextsAreCharactersOrTokensAsTheConfigurationSays) {
  const TinyJob job;
  const fs::path tokenizer = job.folder / "bytes", texts = job.folder / "texts.jsonl";
  const fs::path corpus = job.folder / "texts.arrow";
  TinyJob::must({"data", "tokenizer", "--kind", "byte-level", "--vocab-size", "320", "--out",
                 tokenizer.string(), job.corpus().string()});
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += R"({"text": "<|endoftext|><|endoftext|>a b c d e"})"
             "\n";
  write_file_atomic(texts, lines);
  TinyJob::must({"data", "ingest", "--out", corpus.string(), texts.string()});
  const std::vector<std::string> set = {"run.steps=1", "data.tokenizer=" + tokenizer.string(),
                                        "data.train=" + corpus.string(), "data.validation="};
  const Outcome as_text = job.train("text", set);
  ASSERT_EQ(as_text.exit_code, 0) << as_text.err;
  EXPECT_THAT(as_text.err, HasSubstr("300 of 300 documents spell a special token"));
  EXPECT_THAT(as_text.err, HasSubstr("data.special_tokens = \"parse\""));
  std::vector<std::string> parse = set;
  parse.emplace_back("data.special_tokens=parse");
  const Outcome as_tokens = job.train("tokens", parse);
  ASSERT_EQ(as_tokens.exit_code, 0) << as_tokens.err;
  EXPECT_THAT(as_tokens.err, Not(HasSubstr("spell a special token")));
  parse.front() = "run.steps=2";
  expect_refused(job.train("text", parse), 2, {"data.special_tokens is \"text\" there"});
  const Outcome stats =
      run_skein({"data", "stats", corpus.string(), "--tokenizer", tokenizer.string()});
  EXPECT_THAT(stats.out, HasSubstr("special tokens   spelled by 300 of 300 documents"));
}

}  // namespace
}  // namespace skein
