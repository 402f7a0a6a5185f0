// To Hugging Face and back: what is exported scores as the checkpoint does, bit for bit, and begins
// a run as the checkpoint does; generation is a function of prompt, options and seed.
#include "skein/checkpoint/hugging_face/hugging_face.h"

#include "skein/checkpoint/format/safetensors.h"
#include "tests/places.h"
#include "tests/safetensors_file.h"
#include "tests/testing.h"

namespace skein {
namespace {

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
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

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
  const test::SafetensorsFile file(folder_ / "model.safetensors");
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
  // Another model in the copy's place is not taken: the one that trained is known by its content.
  const fs::path unigram =
      fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/models/unigram/tokenizer.model";
  fs::copy_file(unigram, kept / "tokenizer.model", fs::copy_options::overwrite_existing);
  exported();
  // One whose ids transformers cannot give is refused, and can be left out.
  job().trained("unigram", {"run.steps=1", "data.tokenizer=" + unigram.string()});
  fs::remove_all(again);
  Arguments arguments{"checkpoint", "export", job().run("unigram").string(), "--out",
                      again.string()};
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

// A tokenizer.json, in a folder and as a file of another name, goes through a run to its export.
TEST(ByteLevelTokenizers, GoThroughARun) {
  const fs::path folder =
      fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/byte_level/llama3";
  const fs::path lone = job().folder / "llama3.json";
  fs::copy_file(folder / "tokenizer.json", lone);
  for (const fs::path& tokenizer : {folder, lone}) {
    const Overrides overrides = {"data.tokenizer=" + tokenizer.string(), "model.vocab_size=704",
                                 "run.steps=2"};
    job().trained("byte_level", overrides);
    const fs::path exported = job().folder / "byte_level_export";
    // Of the run, which has a copy: where it came from may be gone.
    TinyJob::must(
        {"checkpoint", "export", job().run("byte_level").string(), "--out", exported.string()});
    EXPECT_EQ(read_file(exported / "tokenizer.json"), read_file(folder / "tokenizer.json"));
    const std::vector<std::string> generate = {"--prompt", "License's", "--max-tokens", "4"};
    const auto generated = [&](const fs::path& model) {
      std::vector<std::string> command = {"generate", "--model", model.string()};
      command.insert(command.end(), generate.begin(), generate.end());
      return TinyJob::must(command).out;
    };
    EXPECT_EQ(generated(exported), generated(job().run("byte_level")));
    fs::remove_all(exported);
    fs::remove_all(job().run("byte_level"));
  }
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

// A Hugging Face folder, exported from a run of two steps, whose config.json and tensors a test may
// change.
class InitFrom : public ::testing::Test {
 protected:
  static constexpr const char* kConfig = "config.json";

  void export_run(Overrides overrides) {
    overrides.insert(overrides.end(), {"run.steps=2", "precision.mode=fp32"});
    job().trained("source", overrides);
    TinyJob::must({"checkpoint", "export", job().checkpoint("source", 2).string(), "--out",
                   folder_.string()});
  }
  void set(const std::string& key, const Json& value) const {
    Json config = read_json((folder_ / kConfig).string());
    config[key] = value;
    std::ofstream(folder_ / kConfig) << config.dump();
  }
  // Its weights again, with `extra` beside them.
  void add_tensor(const ExportTensor& extra) const {
    const fs::path out = job().folder / "with_more";
    {
      const HuggingFaceFolder weights(folder_);
      HuggingFaceExport contents;
      for (const std::string& name : weights.tensor_names()) {
        contents.tensors.push_back({name, DType::kF32, weights.find(name)->shape,
                                    [&weights, name](std::span<std::byte> target) {
                                      weights.read(name, DType::kF32, target);
                                    }});
      }
      contents.tensors.push_back(extra);
      write_hugging_face(out, contents);
    }
    fs::rename(out / "model.safetensors", folder_ / "model.safetensors");
    fs::remove_all(out);
  }
  // The job's configuration, its model named by `model` lines.
  fs::path config_with(const std::string& model) const {
    std::string text = read_file(job().config());
    const size_t begin = text.find("[model]"), end = text.find("[data]");
    text.replace(begin, end - begin, "[model]\n" + model);
    const fs::path path = job().folder / "init.toml";
    std::ofstream(path) << text << "[precision]\nmode = \"fp32\"\n";
    return path;
  }
  Outcome begin(const std::string& model, const Overrides& overrides = {}) const {
    fs::remove_all(job().run("begun"));
    Arguments arguments = {"train", config_with(model).string(),
                           "--set", "run.dir=" + job().run("begun").string(),
                           "--set", "run.steps=1"};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    return run_skein(arguments);
  }
  std::string init() const { return "init_from = \"" + folder_.string() + "\"\n"; }
  Json model_of_run() const { return read_json((job().run("begun") / "model.json").string()); }

  void TearDown() override {
    for (const char* name : {"source", "begun"}) fs::remove_all(job().run(name));
    fs::remove_all(folder_);
  }

  const fs::path folder_ = job().folder / "hf";
};

// What Llama 3.1 is to a Llama 3 configuration.
TEST_F(InitFrom, RefusesAnotherRotaryEmbeddingUnlessItIsAccepted) {
  export_run({});
  fs::copy(folder_ / kConfig, job().folder / "plain.json", fs::copy_options::overwrite_existing);
  const Json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 64}};
  set("rope_scaling", scaling);
  const std::string hf_config = "hf_config = \"" + (job().folder / "plain.json").string() + "\"\n";
  expect_refused(begin(hf_config + init()), 2,
                 {folder_.string(), "model.rope_scaling is {\"factor\":8.0", "there and null",
                  "without hf_config the model is the source's own",
                  "run.accept_changes = \"model.rope_scaling\""});
  EXPECT_FALSE(fs::exists(job().run("begun")));
  EXPECT_EQ(begin(hf_config + init(), {"run.accept_changes=model.rope_scaling"}).exit_code, 0);
  EXPECT_TRUE(model_of_run().at("rope_scaling").is_null());
  // Without hf_config the source's own counts, and goes into the export.
  EXPECT_EQ(begin(init()).exit_code, 0);
  EXPECT_EQ(model_of_run().at("rope_scaling"), scaling);
  // The run goes on when the source is gone.
  fs::rename(folder_, job().folder / "gone");
  const Outcome again =
      run_skein({"train", (job().run("begun") / "config.toml").string(), "--set", "run.steps=2"});
  fs::rename(job().folder / "gone", folder_);
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(InitFrom, RefusesOtherConstantsAndTokenizers) {
  export_run({});
  const std::string own = init();
  expect_refused(begin(own + "rms_norm_eps = 1e-3\nrope_theta = 5e5\n"), 2,
                 {"model.rms_norm_eps is 1e-06 there and 0.001",
                  "model.rope_theta is 10000.0 there and 500000.0"});
  expect_refused(begin(own + "num_attention_heads = 8\nnum_key_value_heads = 4\nhead_dim = 8\n"), 2,
                 {"model.num_attention_heads is 4 there and 8"});
  expect_refused(begin(own + "num_hidden_layers = 1\n"), 2,
                 {"does not fit", "model.num_hidden_layers is 2 there and 1"});
  expect_refused(begin(own + "tie_word_embeddings = true\n"), 2,
                 {"does not fit", "model.tie_word_embeddings is false there and true"});
  const fs::path other = job().folder / "other_tokenizer";
  TinyJob::must({"data", "tokenizer", "--vocab-size", "310", "--out", other.string(),
                 job().corpus().string()});
  expect_refused(begin(own, {"data.tokenizer=" + other.string()}), 2,
                 {"data.tokenizer is 320 tokens, xxh3", "there and 310 tokens, xxh3"});
  EXPECT_EQ(begin(own, {"data.tokenizer=" + other.string(), "run.accept_changes=data.tokenizer"})
                .exit_code,
            0);
}

TEST_F(InitFrom, LeavesNoTensorOut) {
  export_run({"model.attention_bias=true"});
  expect_refused(begin(init() + "attention_bias = false\n"), 2,
                 {"model.attention_bias is true there and false"});
  EXPECT_EQ(begin(init()).exit_code, 0);
  // Biases that config.json does not speak of, as Qwen2 has them.
  set("attention_bias", false);
  expect_refused(begin(init()), 1,
                 {folder_.string(), "model.layers.0.self_attn.k_proj.bias", "and 7 more",
                  "attention_bias is false"});
  expect_refused(
      run_skein({"score", "--model", folder_.string(), "--tokens", token_file().string()}), 1,
      {"self_attn.k_proj.bias", "attention_bias is false"});
  // Biases that it speaks of and that are not there.
  set("attention_bias", true);
  set("mlp_bias", true);
  expect_refused(begin(init()), 1, {"no tensor", "mlp.gate_proj.bias"});
}

TEST_F(InitFrom, KnowsWhatMayStandBeside) {
  export_run({"model.tie_word_embeddings=true"});
  add_tensor(
      {"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, Shape{8},
       [](std::span<std::byte> target) { std::fill(target.begin(), target.end(), std::byte{}); }});
  EXPECT_EQ(begin(init()).exit_code, 0);
  // A tied head that is stored all the same: the same matrix, or it is none.
  const std::string embedding = [&] {
    const HuggingFaceFolder weights(folder_);
    std::string bytes(320 * 64 * 4, '\0');
    weights.read("model.embed_tokens.weight", DType::kF32,
                 std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }();
  const auto head = [&](char flip) {
    return ExportTensor{"lm_head.weight", DType::kF32, Shape{320, 64},
                        [&embedding, flip](std::span<std::byte> target) {
                          std::memcpy(target.data(), embedding.data(), embedding.size());
                          target.back() ^= std::byte(flip);
                        }};
  };
  fs::copy(folder_ / "model.safetensors", job().folder / "kept.safetensors");
  add_tensor(head(0));
  EXPECT_EQ(begin(init()).exit_code, 0);
  fs::rename(job().folder / "kept.safetensors", folder_ / "model.safetensors");
  add_tensor(head(1));
  expect_refused(begin(init()), 1, {"tie_word_embeddings is true", "lm_head.weight differs"});
}

TEST_F(InitFrom, RefusesOtherPrecisionsWithAdvice) {
  export_run({});
  set("torch_dtype", "float8_e4m3fn");
  expect_refused(
      begin(init()), 1,
      {"torch_dtype is \"float8_e4m3fn\"", "\"bfloat16\" or \"float16\"", "save_pretrained"});
}

// A checkpoint, or a run, is asked the same.
TEST_F(InitFrom, OfARunIsCheckedAlike) {
  export_run({"model.rope_theta=5e4"});
  const std::string run = "init_from = \"" + job().run("source").string() + "\"\n";
  EXPECT_EQ(begin(run).exit_code, 0);
  EXPECT_EQ(model_of_run().at("rope_theta"), 50000.0);
  expect_refused(begin(run + "rope_theta = 1e4\n"), 2,
                 {"model.rope_theta is 50000.0 there and 10000.0"});
}

}  // namespace
}  // namespace skein
