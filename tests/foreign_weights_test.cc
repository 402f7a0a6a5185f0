// Weights of other programs, through the commands that read them: what is read has the scores of
// the model that it was made of; what is not is refused by name, before a first step.
#include <cmath>

#include "skein/checkpoint/hugging_face/hugging_face.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// A Hugging Face folder, exported from a run of two steps, and copies of it with other tensors.
class ForeignWeights : public ::testing::Test {
 protected:
  static const TinyJob& job() {
    static const TinyJob job;
    return job;
  }
  static const fs::path& good() {
    static const fs::path folder = [] {
      job().trained("source", {"run.steps=2", "precision.mode=fp32"});
      const fs::path out = job().folder / "good";
      TinyJob::must({"checkpoint", "export", job().run("source").string(), "--out", out.string()});
      return out;
    }();
    return folder;
  }

  using Change = std::function<void(std::map<std::string, ExportTensor>&)>;
  // The good folder with its tensors changed; `config` is merged into its config.json.
  static fs::path with(const Change& change, const Json& config = Json::object()) {
    const fs::path out = job().folder / "changed";
    fs::remove_all(out);
    const HuggingFaceFolder weights(good());
    std::map<std::string, ExportTensor> tensors;
    for (const std::string& name : weights.tensor_names()) {
      tensors[name] = {name, DType::kF32, weights.find(name)->shape,
                       [&weights, name](std::span<std::byte> target) {
                         weights.read(name, DType::kF32, target);
                       }};
    }
    change(tensors);
    HuggingFaceExport contents;
    for (auto& [name, tensor] : tensors) {
      tensor.name = name;
      contents.tensors.push_back(tensor);
    }
    for (const auto& entry : fs::directory_iterator(good())) {
      if (entry.path().extension() != ".safetensors") contents.copies.push_back(entry.path());
    }
    write_hugging_face(out, contents);
    Json json = read_json((out / "config.json").string());
    json.update(config);
    std::ofstream(out / "config.json") << json.dump();
    return out;
  }
  static void rename(std::map<std::string, ExportTensor>& tensors,
                     const std::function<std::string(const std::string&)>& name) {
    std::map<std::string, ExportTensor> renamed;
    for (auto& [old, tensor] : tensors) renamed[name(old)] = tensor;
    tensors = std::move(renamed);
  }

  static Outcome score(const fs::path& model) {
    const fs::path tokens = job().folder / "tokens.json";
    std::ofstream(tokens) << "[[1, 37, 74, 111, 148, 185, 222, 259]]";
    return run_skein({"score", "--model", model.string(), "--tokens", tokens.string()});
  }
  static Outcome train(const fs::path& model, const Overrides& overrides = {}) {
    fs::remove_all(job().run("begun"));
    return run_skein(job().arguments(
        "train", "begun",
        Overrides{"run.steps=1", "precision.mode=fp32", "model.init_from=" + model.string()} +
            overrides));
  }
};

TEST_F(ForeignWeights, AreReadUnderTheNamesOfWrappers) {
  const std::string expected = score(good()).out;
  ASSERT_NE(expected, "");
  const fs::path compiled = with([](auto& tensors) {
    rename(tensors, [](const std::string& name) { return "_orig_mod." + name; });
  });
  const Outcome outcome = score(compiled);
  EXPECT_EQ(outcome.out, expected) << outcome.err;
  EXPECT_NE(outcome.err.find("begin with _orig_mod. (torch.compile)"), std::string::npos);
  const Outcome bare = score(with([](auto& tensors) {
    rename(tensors, [](const std::string& name) {
      return name.starts_with("model.") ? name.substr(6) : name;
    });
  }));
  EXPECT_EQ(bare.out, expected) << bare.err;
  // Training and export read them as well.
  EXPECT_EQ(train(compiled).exit_code, 0);
  const fs::path out = job().folder / "exported_again";
  TinyJob::must({"checkpoint", "export", compiled.string(), "--out", out.string()});
  EXPECT_EQ(score(out).out, expected);
}

TEST_F(ForeignWeights, AHeadThatIsMissingIsTheEmbeddingsWhereThatIsSet) {
  const fs::path headless = with([](auto& tensors) { tensors.erase(kHead); });
  for (const Outcome& outcome : {score(headless), train(headless)}) {
    expect_refused(outcome, 1,
                   {"lm_head.weight is missing, and tie_word_embeddings is false",
                    "`--set model.tie_word_embeddings=true`"});
  }
  EXPECT_FALSE(fs::exists(job().run("begun")));
  // A plan says it before the machines are there.
  const Overrides of_source = {"model.init_from=" + headless.string()};
  expect_refused(run_skein(job().arguments("plan", "begun", of_source)), 1,
                 {"lm_head.weight is missing"});
  // What the error says helps.
  const Outcome tied = train(headless, {"model.tie_word_embeddings=true"});
  EXPECT_EQ(tied.exit_code, 0) << tied.err;
  const Json model = read_json((job().run("begun") / "model.json").string());
  EXPECT_TRUE(model.at("tie_word_embeddings").get<bool>());
  // The other way around: a head of its own, and a config.json that says that there is none.
  const fs::path untied = with([](auto&) {}, {{"tie_word_embeddings", true}});
  expect_refused(score(untied), 1,
                 {"lm_head.weight differs", "`--set model.tie_word_embeddings=false`"});
  const Outcome own = train(untied, {"model.tie_word_embeddings=false"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
}

TEST_F(ForeignWeights, ThatAreNotFiniteAreRefusedBeforeAStep) {
  const auto change = [](float value, int64_t at) {
    return [value, at](std::map<std::string, ExportTensor>& tensors) {
      ExportTensor& tensor = tensors["model.layers.1.mlp.down_proj.weight"];
      const auto fill = tensor.fill;
      tensor.fill = [fill, value, at](std::span<std::byte> target) {
        fill(target);
        std::memcpy(target.data() + 4 * at, &value, 4);
        std::memcpy(target.data() + target.size() - 4, &value, 4);
      };
    };
  };
  const fs::path nan = with(change(NAN, 131));
  const Words words = {"tensor 'model.layers.1.mlp.down_proj.weight' holds 2 of",
                       "values that are not finite: the first is nan at ["};
  expect_refused(score(nan), 1, words);
  expect_refused(train(nan), 1, words);
  expect_refused(run_skein({"generate", "--model", nan.string(), "--prompt", "the"}), 1, words);
  const fs::path out = job().folder / "of_nan";
  expect_refused(run_skein({"checkpoint", "export", nan.string(), "--out", out.string()}), 1,
                 words);
  EXPECT_FALSE(fs::exists(out));
  // Of several workers each reads its own part; one line says it, and none tries again.
  const Outcome two = train(nan, {"launch.workers=2", "parallel.tensor=2"});
  EXPECT_EQ(two.exit_code, 1) << two.err;
  EXPECT_NE(two.err.find(words[0]), std::string::npos) << two.err;
  EXPECT_FALSE(fs::exists(job().run("begun") / "checkpoints" / "step-00000001"));
  expect_refused(score(with(change(-INFINITY, 0))), 1, {"the first is -inf at [0, 0]"});
}

TEST_F(ForeignWeights, KeysThatNobodyKnowsAreTold) {
  const auto count = [](const std::string& text) {
    int found = 0;
    for (size_t at = 0; (at = text.find("does not know the key 'kv_shared'", at)) != text.npos;
         ++at)
      ++found;
    return found;
  };
  const fs::path model =
      with([](auto&) {}, {{"kv_shared", 2}, {"final_logit_softcapping", nullptr}});
  EXPECT_EQ(count(score(model).err), 1);
  EXPECT_EQ(count(train(model).err), 1);
  // Without weights, as the description of a new model.
  const fs::path config = job().folder / "described.toml";
  std::string text = read_file(job().config());
  const size_t begin = text.find("[model]"), end = text.find("[data]");
  text.replace(begin, end - begin,
               fmt::format("[model]\nhf_config = \"{}\"\n", (model / "config.json").string()));
  std::ofstream(config) << text;
  fs::remove_all(job().run("begun"));
  const Overrides overrides = {"run.steps=1", "run.dir=" + job().run("begun").string()};
  for (const char* command : {"plan", "train"}) {
    Arguments arguments = {command, config.string()};
    for (const std::string& each : overrides) arguments.insert(arguments.end(), {"--set", each});
    EXPECT_EQ(count(TinyJob::must(arguments).err), 1) << command;
  }
  expect_refused(score(with([](auto&) {}, {{"final_logit_softcapping", 30.0}})), 1,
                 {"final_logit_softcapping is 30.0, expected null: logits are not capped"});
}

TEST_F(ForeignWeights, OfOtherKindsAreNamed) {
  const fs::path gpt2 = with([](auto& tensors) {
    rename(tensors, [](const std::string& name) {
      return name == kEmbedding ? "transformer.wte.weight" : "transformer.h.0.attn.c_attn." + name;
    });
  });
  expect_refused(score(gpt2), 1, {"those of a gpt2 model, which Skein does not have"});
  const fs::path named = with([](auto&) {}, {{"model_type", "gpt2"}});
  expect_refused(score(named), 1, {"this is a gpt2 model, which Skein does not have"});
  const fs::path adapter = job().folder / "adapter";
  fs::create_directory(adapter);
  std::ofstream(adapter / "adapter_config.json")
      << R"({"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b-hf"})";
  for (const Outcome& outcome : {score(adapter), train(adapter)}) {
    expect_refused(outcome, 1, {"a LoRA adapter of meta-llama/Llama-2-7b-hf: merge it first"});
  }
}

}  // namespace
}  // namespace skein
