#include "skein/config/other_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "skein/base/error.h"
#include "skein/config/fields.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

std::vector<std::string> names_of(const OtherWord& word) {
  std::istringstream stream{std::string(word.names)};
  std::vector<std::string> names;
  for (std::string name; stream >> name;) names.push_back(name);
  return names;
}

std::string refusal_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return error_of([&] { parse_config(text, "run.toml", overrides); });
}

TEST(OtherWords, LeadToKeysThatAreThere) {
  for (const OtherWord& word : other_words()) {
    EXPECT_FALSE(word.keys.empty() && word.meaning.empty()) << word.word;
    for (const std::string& key : keys_of(word)) {
      const size_t dot = key.find('.');
      EXPECT_NO_THROW(find_key(key.substr(0, dot), key.substr(dot + 1), "")) << key;
    }
  }
}

TEST(OtherWords, EachNameStandsOnceAndIsNoKeyOfOurs) {
  std::set<std::string, std::less<>> own, others;
  for (const ConfigField& field : config_fields()) own.emplace(field.key);
  for (const ModelKey& key : model_keys()) own.emplace(key.key);
  for (const OtherWord& word : other_words()) {
    for (const std::string& name : names_of(word)) {
      EXPECT_FALSE(own.contains(name)) << name;
      EXPECT_TRUE(others.insert(name).second) << name;
      EXPECT_EQ(find_other_word(name), &word) << name;
    }
  }
}

TEST(OtherWords, OfTheFieldAreThere) {
  for (const char* name :
       {"gradient_accumulation", "batch_size", "mfu", "wsd", "trapezoid", "warm_restarts",
        "perplexity", "finetune", "fsdp", "tp", "pp", "cp", "wandb", "Batch-Size"}) {
    EXPECT_NE(find_other_word(name), nullptr) << name;
  }
}

TEST(OtherWords, UnknownKeysSayWhatTheyAreHere) {
  const std::pair<const char*, const char*> cases[] = {
      {"batch.gradient_accumulation",
       "gradient accumulation: follows from batch.global_sequences / (batch.micro_sequences · data "
       "ranks)"},
      {"log.wandb", "Weights & Biases: no key: metrics.jsonl"},
      {"optimizer.lr", "did you mean learning_rate?"},
      {"optimizer.min_lr", "did you mean min_learning_rate?"},
      {"train.batch_size",
       "unknown section [train]: batch_size: did you mean global_sequences in "
       "[batch]?"},
      {"train.steps", "unknown section [train]: did you mean steps in [run]?"},
      {"parallel.tp", "did you mean tensor? (tensor-parallel degree)"},
      {"parallel.fsdp", "did you mean zero? (3 shards weights"},
      {"model.dtype", "did you mean mode in [precision]?"},
      {"wandb.project", "unknown section [wandb]: Weights & Biases: no key"},
      {"optimizer.betas", "did you mean beta1 and beta2?"},
      {"model.n_layers", "did you mean num_hidden_layers?"},
      {"optimizer.warm_restarts", "warm restarts: no schedule rises again"},
  };
  for (const auto& [key, words] : cases) {
    EXPECT_THAT(refusal_of("", {std::string(key) + "=1"}), HasSubstr(words)) << key;
  }
  EXPECT_THAT(refusal_of("batch_size = 8\n"),
              HasSubstr("batch_size stands outside a section: did you mean global_sequences in "
                        "[batch]?"));
  EXPECT_THAT(refusal_of("[training]\nbatch_size = 8\n"),
              HasSubstr("unknown section [training]: batch_size: did you mean global_sequences"));
}

TEST(OtherWords, ValuesOfOtherProgramsSayWhatToWriteHere) {
  const std::pair<const char*, const char*> cases[] = {
      {"precision.mode=bfloat16",
       "one of: fp32, bf16, bf16-sr, mixed, fp8; for bfloat16: \"mixed\""},
      {"precision.mode=fp16", "for fp16: fp16 is not there"},
      {"memory.recompute=true", "for true: \"full\""},
      {"optimizer.schedule=wsd", "did you mean constant_steps?"},
      {"optimizer.schedule=cosine_with_restarts", "warm restarts: no schedule rises again"},
      {"optimizer.name=sgd", "adamw, muon"},
      {"device.kind=gpu", "for gpu: \"cuda\""},
  };
  for (const auto& [setting, words] : cases) {
    EXPECT_THAT(refusal_of("", {setting}), HasSubstr(words)) << setting;
  }
  EXPECT_THAT(refusal_of("[memory]\nrecompute = true\n"), HasSubstr("for true: \"full\""));
  EXPECT_EQ(explain_other_value("precision.mode", "quick"), "");
}

TEST(OtherWords, HelpIsPlainText) {
  const std::string help = other_words_help();
  EXPECT_EQ(help.find_first_of("`["), std::string::npos) << help;
  for (const char* word : {"gradient accumulation", "MFU", "WSD", "warm restarts", "perplexity",
                           "fine-tuning", "FSDP", "TP", "PP", "CP", "batch size"}) {
    EXPECT_THAT(help, HasSubstr(word));
  }
}

}  // namespace
}  // namespace skein
