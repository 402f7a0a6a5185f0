// To Hugging Face and back: what is exported scores as the checkpoint does, bit for bit, and begins
// a run as the checkpoint does; generation is a function of prompt, options and seed.
#include "skein/checkpoint/safetensors.h"
#include "tests/testing.h"

namespace skein {
namespace {

using Overrides = std::vector<std::string>;

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// Beginnings of one sequence, of lengths on both sides of what programs are padded to.
fs::path token_file() {
  Json lists = Json::array();
  for (const int64_t length : {1, 2, 7, 63, 64, 65, 200}) {
    Json list = Json::array();
    for (int64_t i = 0; i < length; ++i) list.push_back(i * 37 % 320);
    lists.push_back(list);
  }
  const fs::path path = job().folder / "tokens.json";
  std::ofstream(path) << lists.dump();
  return path;
}

Json score(const fs::path& model, const std::string& threads = "0") {
  const Outcome outcome = TinyJob::must({"score", "--model", model.string(), "--tokens",
                                         token_file().string(), "--threads", threads});
  return Json::parse(outcome.out).at("logprobs");
}

struct Case {
  const char* name;
  Overrides overrides;
  bool tied = false;
};

class Export : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kSteps = 20;

  void SetUp() override {
    Overrides overrides = GetParam().overrides;
    overrides.push_back(fmt::format("run.steps={}", kSteps));
    job().trained("run", overrides);
    checkpoint_ = job().checkpoint("run", kSteps);
    folder_ = job().folder / "exported";
    TinyJob::must({"checkpoint", "export", checkpoint_.string(), "--out", folder_.string()});
  }
  void TearDown() override {
    fs::remove_all(job().run("run"));
    fs::remove_all(job().run("continued"));
    fs::remove_all(folder_);
  }

  fs::path checkpoint_;
  fs::path folder_;
};

TEST_P(Export, HoldsWhatTransformersReads) {
  const SafetensorsFile file(folder_ / "model.safetensors");
  const bool fp32 = GetParam().overrides[0] == "precision.mode=fp32";
  for (const SafetensorsEntry& entry : file.entries()) {
    EXPECT_EQ(entry.dtype, fp32 ? "F32" : "BF16") << entry.name;
  }
  EXPECT_EQ(file.find("lm_head.weight") == nullptr, GetParam().tied);
  EXPECT_NE(file.find("model.layers.1.self_attn.k_proj.weight"), nullptr);
  const Json config = read_json((folder_ / "config.json").string());
  EXPECT_EQ(config.at("model_type"), "llama");
  EXPECT_EQ(config.at("architectures").at(0), "LlamaForCausalLM");
  EXPECT_EQ(config.at("tie_word_embeddings"), GetParam().tied);
  EXPECT_EQ(config.at("vocab_size"), 320);
  for (const char* name : {"tokenizer.model", "tokenizer.json", "tokenizer_config.json"}) {
    EXPECT_EQ(read_file(folder_ / name), read_file(job().tokenizer() / name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ / "generation_config.json"));
}

TEST_P(Export, TokenizerFilesAreMadeOfTheModelThatTrainingUsed) {
  const fs::path kept = job().run("run") / "tokenizer", again = job().folder / "again";
  const auto exported = [&] {
    fs::remove_all(again);
    TinyJob::must({"checkpoint", "export", job().run("run").string(), "--out", again.string()});
    for (const char* name : {"tokenizer.model", "tokenizer.json", "tokenizer_config.json"}) {
      EXPECT_EQ(read_file(again / name), read_file(job().tokenizer() / name)) << name;
    }
  };
  // Another tokenizer's file beside it, and the model alone, as Meta has it.
  std::ofstream(kept / "tokenizer.json") << "{\"model\": {}}";
  exported();
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    fs::remove(kept / name);
  }
  exported();
  // One whose ids transformers cannot give is refused, and can be left out.
  fs::copy_file(
      fs::path(SKEIN_SOURCE_DIR) / "skein/data/testdata/tokenizer/unigram/tokenizer.model",
      kept / "tokenizer.model", fs::copy_options::overwrite_existing);
  fs::remove_all(again);
  Arguments arguments{"checkpoint", "export", job().run("run").string(), "--out", again.string()};
  const Outcome refused = run_skein(arguments);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("unigram"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--without-tokenizer"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(again));
  arguments.push_back("--without-tokenizer");
  TinyJob::must(arguments);
  EXPECT_TRUE(fs::exists(again / "model.safetensors"));
  EXPECT_FALSE(fs::exists(again / "tokenizer.model"));
  fs::remove_all(again);
}

TEST_P(Export, ScoresAsTheCheckpointDoes) {
  const Json of_checkpoint = score(checkpoint_);
  EXPECT_EQ(score(folder_), of_checkpoint);
  EXPECT_EQ(score(folder_, "1"), of_checkpoint);
  EXPECT_EQ(score(job().run("run")), of_checkpoint);  // a run: its newest checkpoint
  ASSERT_EQ(of_checkpoint.size(), 7u);
  EXPECT_EQ(of_checkpoint.at(6).size(), 200u);
  for (const Json& list : of_checkpoint) {
    EXPECT_TRUE(list.at(0).is_null());
    for (size_t t = 1; t < list.size(); ++t) EXPECT_LT(list.at(t).get<double>(), 0);
  }
  // What follows a token does not change its score.
  for (const Json& list : of_checkpoint) {
    for (size_t t = 1; t < list.size(); ++t) EXPECT_EQ(list.at(t), of_checkpoint.at(6).at(t));
  }
}

TEST_P(Export, BeginsARunAsTheCheckpointDoes) {
  const auto first_loss = [&](const fs::path& from) {
    Overrides overrides = GetParam().overrides;
    overrides.insert(overrides.end(), {"run.steps=1", "model.init_from=" + from.string()});
    fs::remove_all(job().run("continued"));
    job().trained("continued", overrides);
    return read_curve(job().run("continued")).at(1);
  };
  const std::string of_checkpoint = first_loss(checkpoint_);
  EXPECT_EQ(first_loss(folder_), of_checkpoint);
  const Json begun = Json::parse("{" + of_checkpoint + "}");
  const Json random = Json::parse("{" + read_curve(job().run("run")).at(1) + "}");
  EXPECT_LT(begun.at("loss"), random.at("loss").get<double>() - 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Export,
    ::testing::Values(
        Case{"untied_fp32", {"precision.mode=fp32"}},
        Case{"tied_fp32", {"precision.mode=fp32", "model.tie_word_embeddings=true"}, true},
        Case{"untied_bf16_sr", {"precision.mode=bf16-sr"}},
        Case{"tied_mixed", {"precision.mode=mixed", "model.tie_word_embeddings=true"}, true}),
    [](const auto& info) { return std::string(info.param.name); });

std::string generate(const fs::path& model, const Arguments& options) {
  Arguments arguments = {"generate",     "--model", model.string(), "--prompt", "the",
                         "--max-tokens", "40"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return TinyJob::must(arguments).out;
}

TEST(Generate, IsAFunctionOfPromptOptionsAndSeed) {
  job().trained("generating", {"run.steps=30", "precision.mode=fp32"});
  const fs::path checkpoint = job().checkpoint("generating", 30);
  const fs::path folder = job().folder / "generating_exported";
  TinyJob::must({"checkpoint", "export", checkpoint.string(), "--out", folder.string()});
  const std::string drawn = generate(folder, {"--seed", "5", "--temperature", "1"});
  EXPECT_EQ(generate(folder, {"--seed", "5", "--temperature", "1"}), drawn);
  EXPECT_EQ(generate(checkpoint, {"--seed", "5", "--temperature", "1", "--threads", "1"}), drawn);
  EXPECT_NE(generate(folder, {"--seed", "6", "--temperature", "1"}), drawn);
  EXPECT_EQ(drawn.substr(0, 3), "the");
  const std::string greedy = generate(folder, {"--temperature", "0", "--seed", "5"});
  EXPECT_EQ(generate(folder, {"--temperature", "0", "--seed", "6"}), greedy);
  // So little mass holds but the likeliest token.
  EXPECT_EQ(generate(folder, {"--temperature", "1", "--top-p", "0.000001"}), greedy);
  EXPECT_NE(greedy, drawn);
}

}  // namespace
}  // namespace skein
