// A sliding window that is not shorter than the text is the same function as none: training gives
// the bits of a model without it, exports keep it, and only longer rows and texts are refused.
#include <fstream>

#include "tests/testing.h"

namespace skein {
namespace {

constexpr int64_t kWindow = 64;  // as many tokens as a row of the job has

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// A config.json with these keys; sizes are the job's own.
Overrides model(const std::string& name, const Json& keys) {
  const fs::path path = job().folder / (name + ".json");
  std::ofstream(path) << keys.dump();
  return {"model.hf_config=" + path.string(), "run.steps=3"};
}

Json exported_config(const std::string& run) {
  const fs::path out = job().folder / (run + "_hf");
  fs::remove_all(out);
  TinyJob::must({"checkpoint", "export", job().run(run).string(), "--out", out.string()});
  return read_json((out / "config.json").string());
}

const Json kMistral = {{"model_type", "mistral"}, {"sliding_window", kWindow}};
const Json kQwen = {{"model_type", "qwen2"},
                    {"use_sliding_window", true},
                    {"sliding_window", kWindow},
                    {"max_window_layers", 1},
                    {"layer_types", {"full_attention", "sliding_attention"}}};

TEST(AttentionWindow, OfARowsLengthGivesTheBitsOfNone) {
  for (const Json& keys : {kMistral, kQwen}) {
    SCOPED_TRACE(keys.dump());
    Json plain = keys;
    plain["sliding_window"] = nullptr;
    if (plain.contains("layer_types")) plain["layer_types"][1] = "full_attention";
    for (const char* run : {"window", "plain"}) fs::remove_all(job().run(run));
    job().trained("window", model("window", keys));
    job().trained("plain", model("plain", plain));
    EXPECT_EQ(read_curve(job().run("window")), read_curve(job().run("plain")));
    EXPECT_EQ(read_weights(job().checkpoint("window", 3)),
              read_weights(job().checkpoint("plain", 3)));
    const Json config = exported_config("window");
    for (const auto& [key, value] : keys.items()) EXPECT_EQ(config.at(key), value) << key;
  }
}

TEST(AttentionWindow, OfLessThanARowIsRefused) {
  for (const Json& keys : {kMistral, kQwen}) {
    SCOPED_TRACE(keys.dump());
    for (const char* command : {"train", "plan"}) {
      const Outcome outcome = run_skein(job().arguments(
          command, "longer",
          model("window", keys) + Overrides{"data.sequence_length=65", "batch.micro_sequences=1"}));
      expect_refused(outcome, 2,
                     {"data.sequence_length is 65", "sliding_window = 64", "expected at most 64",
                      "data.sequence_length=64", "model.sliding_window=0"});
    }
    EXPECT_FALSE(fs::exists(job().run("longer")));
  }
  // Which the advice makes a model without one.
  job().trained("without", model("window", kMistral) +
                               Overrides{"data.sequence_length=65", "model.sliding_window=0"});
  EXPECT_TRUE(exported_config("without").at("sliding_window").is_null());
}

fs::path tokens_of_length(int64_t length) {
  const fs::path path = job().folder / fmt::format("tokens{}.json", length);
  std::ofstream(path) << Json::array({std::vector<int>(static_cast<size_t>(length), 7)}).dump();
  return path;
}

class Windowed : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(job().run("window"));
    job().trained("window", model("window", kMistral));
    exported_config("window");
  }
  const fs::path folder_ = job().folder / "window_hf";
};

TEST_F(Windowed, ModelsReadTextsUpToTheWindow) {
  for (const fs::path& source : {folder_, job().run("window")}) {
    const auto score = [&](int64_t length) {
      return run_skein(
          {"score", "--model", source.string(), "--tokens", tokens_of_length(length).string()});
    };
    EXPECT_EQ(score(kWindow).exit_code, 0);
    expect_refused(score(kWindow + 1), 1,
                   {"sequence 0 has 65 tokens", "at most 64", "sliding_window"});
  }
  const auto generate = [&](const std::string& prompt) {
    return run_skein({"generate", "--model", folder_.string(), "--prompt", prompt, "--max-tokens",
                      "100", "--seed", "1"});
  };
  const Outcome shorter = generate("tea");
  EXPECT_EQ(shorter.exit_code, 0) << shorter.err;
  EXPECT_NE(shorter.err.find("64 tokens at most (sliding_window)"), std::string::npos)
      << shorter.err;
  std::string prompt;
  for (int i = 0; i < 100; ++i) prompt += "x y ";
  expect_refused(generate(prompt), 2, {"--prompt has", "64 at most (sliding_window)"});
}

TEST_F(Windowed, ARunKeepsTheRule) {
  const std::string config = (job().run("window") / "config.toml").string();
  const auto go_on = [&](const Overrides& overrides) {
    Arguments arguments = {"train", config};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    return run_skein(arguments);
  };
  EXPECT_EQ(go_on({"run.steps=4"}).exit_code, 0);
  expect_refused(
      go_on({"run.steps=5", "data.sequence_length=128", "run.accept_changes=data.sequence_length"}),
      2, {"data.sequence_length is 128", "at most 64"});
  // Another window that holds a row changes only what is exported.
  const Outcome wider = go_on({"run.steps=5", "model.sliding_window=96"});
  EXPECT_EQ(wider.exit_code, 0) << wider.err;
  EXPECT_NE(wider.err.find("model.sliding_window 64"), std::string::npos) << wider.err;
  EXPECT_EQ(exported_config("window").at("sliding_window"), 96);

  const Outcome begun =
      job().train("begun", {"run.steps=1", "data.sequence_length=128",
                            "model.init_from=" + folder_.string(), "model.model_type=mistral"});
  expect_refused(begun, 2, {"data.sequence_length is 128", "at most 96"});
}

}  // namespace
}  // namespace skein
