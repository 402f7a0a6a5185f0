#include "skein/config/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/config/fields.h"
#include "skein/config/other_words.h"
#include "tests/places.h"

namespace skein {
namespace {

constexpr char kMinimal[] = "[data]\ntrain = \"c.arrow\"\ntokenizer = \"tok\"\n";

Config parse(const std::string& text, std::vector<std::string> overrides = {}) {
  Config config = parse_config(text, "demo.toml", overrides);
  check_config(config, "demo.toml", ConfigUse::kPlan);
  return config;
}

// The message of the kUsage error that `text` gives.
std::string error_of(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    parse(text, std::move(overrides));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Config, HasTheDefaultsOfTheReference) {
  const Config config = parse(kMinimal);
  Config expected;
  expected.data.train = "c.arrow";
  expected.data.tokenizer = "tok";
  expected.optimizer.warmup_steps = 200;  // derived from 2,000 steps
  expected.optimizer.decay_steps = 1800;
  EXPECT_EQ(config, expected);
  EXPECT_EQ(config.run.steps, 2000);
  EXPECT_EQ(config.optimizer.epsilon, 1e-5);
  EXPECT_EQ(config.precision.mode, "bf16-sr");
  EXPECT_EQ(config.launch.collective_timeout_s, 60);
  EXPECT_EQ(checkpoint_dir(config), "runs/demo/checkpoints");
}

TEST(Config, ReadsEveryType) {
  const Config config = parse(
      "run.steps = 1_000\n[optimizer]\nlearning_rate = 1\nschedule = \"linear\"\nclip_norm = 0\n"
      "[log]\ntensorboard = false\n");
  EXPECT_EQ(config.run.steps, 1000);
  EXPECT_EQ(config.optimizer.learning_rate, 1.0);
  EXPECT_EQ(config.optimizer.schedule, "linear");
  EXPECT_EQ(config.optimizer.clip_norm, 0.0);
  EXPECT_FALSE(config.log.tensorboard);
  EXPECT_EQ(learning_rate_schedule(config.optimizer).decay, LearningRateDecay::kLinear);
}

TEST(Config, OverridesComeLastAndInOrder) {
  const Config config =
      parse("[run]\nsteps = 5\n",
            {"run.steps=6", "run.steps=7", "run.dir=runs/a b=c", "optimizer.learning_rate=1e-4",
             "log.tensorboard=false", "data.train=\"quoted.arrow\"",
             "model.rope_scaling={factor=2.0}", "model.hidden_act=silu", "data.validation=true"});
  EXPECT_EQ(config.run.steps, 7);
  EXPECT_EQ(config.run.dir, "runs/a b=c");
  EXPECT_EQ(config.optimizer.learning_rate, 1e-4);
  EXPECT_FALSE(config.log.tensorboard);
  EXPECT_EQ(config.data.train, "quoted.arrow");
  EXPECT_EQ(config.data.validation, "true");
  EXPECT_EQ(config.model.inline_keys.dump(),
            R"({"hidden_act":"silu","rope_scaling":{"factor":2.0}})");
}

TEST(Config, InlineModelKeysReplaceTheDefaultFileOnly) {
  const Config alone = parse("[model]\nhidden_size = 64\neos_token_id = [1, 2]\n");
  EXPECT_EQ(alone.model.hf_config, "");
  EXPECT_EQ(alone.model.inline_keys.dump(), R"({"eos_token_id":[1,2],"hidden_size":64})");

  const std::string file = testing::TempDir() + "/hf_config.json";
  std::ofstream(file) << R"({"hidden_size": 32, "vocab_size": 100})";
  const Config both = parse("[model]\nhf_config = \"" + file + "\"\nhidden_size = 64\n");
  EXPECT_EQ(hf_config_json(both.model).dump(), R"({"hidden_size":64,"vocab_size":100})");
}

TEST(Config, NamesLineFoundAndExpected) {
  EXPECT_EQ(error_of("[optimizer]\nbeta1 = 0.9\nlearning_rate = \"fast\"\n"),
            "demo.toml:3: learning_rate in [optimizer] is \"fast\" (a string): expected a number "
            "above 0 to 1000");
  EXPECT_EQ(error_of("[log]\ntensorboard = \"true\"\n"),
            "demo.toml:2: tensorboard in [log] is \"true\" (a string): expected true or false, "
            "without quotes");
  EXPECT_EQ(error_of("[log]\ntensorboard = 1\n"),
            "demo.toml:2: tensorboard in [log] is 1: expected true or false, without quotes");
  EXPECT_EQ(error_of("[data]\nsequence_length = 1\n"),
            "demo.toml:2: sequence_length in [data] is 1: expected a whole number from 2 to "
            "16777216");
  EXPECT_EQ(error_of("[run]\nsteps = 10.5\n"),
            "demo.toml:2: steps in [run] is 10.5 (a float): expected a whole number from 0 to "
            "268435455");
  EXPECT_EQ(error_of("[precision]\nmode = \"fp64\"\n"),
            "demo.toml:2: mode in [precision] is \"fp64\" (a string): expected one of: fp32, bf16, "
            "bf16-sr, mixed, fp8");
  EXPECT_EQ(
      error_of("[optimizer]\nbeta2 = 1.0\n"),
      "demo.toml:2: beta2 in [optimizer] is 1 (a float): expected a number from 0 to below 1");
  EXPECT_EQ(error_of("[model]\nhidden_size = \"64\"\n"),
            "demo.toml:2: hidden_size in [model] is \"64\" (a string): expected a whole number");
  EXPECT_EQ(error_of("", {"run.steps=many"}),
            "--set run.steps=many: many is not a TOML value: expected a whole number from 0 to "
            "268435455");
  EXPECT_EQ(error_of("", {"steps"}),
            "--set steps: expected section.key=value, such as run.steps=100");
  EXPECT_THAT(error_of("", {"lr=1e-3"}), testing::HasSubstr("did you mean learning_rate in"));
  EXPECT_THAT(error_of("", {"tp=2"}), testing::HasSubstr("did you mean tensor in [parallel]"));
}

TEST(Config, RefusesNumbersThatAreNotFinite) {
  for (const char* value : {"nan", "inf", "-inf", "-1"}) {
    EXPECT_NE(error_of(std::string("[optimizer]\nweight_decay = ") + value), "no error") << value;
  }
  EXPECT_NE(error_of("[model]\nrms_norm_eps = nan"), "no error");
  EXPECT_NE(error_of("[model]\nrope_scaling = {factor = inf}"), "no error");
  EXPECT_NE(error_of("[model]\nrope_scaling = {factor = 1979-05-27}"), "no error");
}

TEST(Config, SuggestsTheNearestName) {
  EXPECT_EQ(error_of("[optimizer]\n\nlearnin_rate = 1\n"),
            "demo.toml:3: unknown key learnin_rate in [optimizer]: did you mean learning_rate?");
  EXPECT_EQ(error_of("[optimizer]\nlr = 1\n"),
            "demo.toml:2: unknown key lr in [optimizer]: did you mean learning_rate?");
  EXPECT_EQ(error_of("[run]\nsequence_len = 1\n"),
            "demo.toml:2: unknown key sequence_len in [run]: did you mean sequence_length in "
            "[data]?");
  EXPECT_EQ(error_of("[optimiser]\n"),
            "demo.toml:1: unknown section [optimiser]: did you mean [optimizer]?");
  EXPECT_EQ(error_of("[model]\nnum_hiden_layers = 2\n"),
            "demo.toml:2: unknown key num_hiden_layers in [model]: did you mean "
            "num_hidden_layers?");
  EXPECT_EQ(error_of("", {"batch.global_sequence=4"}),
            "--set batch.global_sequence=4: unknown key global_sequence in [batch]: did you mean "
            "global_sequences?");
  EXPECT_EQ(error_of("[memory]\nzzzzzzzz = 1\n"),
            "demo.toml:2: unknown key zzzzzzzz in [memory]: [memory] has recompute, "
            "offload_optimizer, offload_activations, offload_min_bytes, keep_fp8_weights");
  EXPECT_EQ(error_of("[zzzzzzzz]\n").substr(0, 60),
            "demo.toml:1: unknown section [zzzzzzzz]: expected one of run");
  EXPECT_EQ(error_of("steps = 3\n"),
            "demo.toml:1: steps stands outside a section: expected [section] lines before");
}

TEST(Config, TellsWhereTomlIsBroken) {
  EXPECT_EQ(error_of("[run]\nsteps = \n").substr(0, 32), "demo.toml:2: not valid TOML: Err");
  EXPECT_EQ(error_of("[run]\nsteps = 1\nsteps = 2\n").substr(0, 29),
            "demo.toml:3: not valid TOML: ");
  EXPECT_EQ(error_of("[run]\ndir = \"\xff\"\n").substr(0, 29), "demo.toml:2: not valid TOML: ");
  EXPECT_EQ(error_of("[run]\nsteps = 1\n[>x]\nsteps = 2\n"),
            "demo.toml:3: not valid TOML: unexpected character");
  EXPECT_EQ(error_of("[run]\ndir = \"é\" # é\nдва = 1\n").substr(0, 29),
            "demo.toml:3: not valid TOML: ");
  const std::string deep = "[model]\nrope_scaling = " + std::string(100000, '[');
  EXPECT_EQ(error_of(deep).substr(0, 29), "demo.toml:2: not valid TOML: ");
}

TEST(Config, ChecksHowKeysFitTogether) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text);
  };
  expect("[batch]\nglobal_sequences = 4\nmicro_sequences = 8", "more than global_sequences");
  expect("[batch]\nglobal_sequences = 10\nmicro_sequences = 4", "multiple of micro_sequences");
  expect("[batch]\nglobal_sequences = 10\nmicro_sequences = 2\n[parallel]\ndata = 4",
         "multiple of [parallel] data");
  expect("[batch]\nglobal_sequences = 8\n[parallel]\nreduction_width = 3",
         "multiple of [parallel] reduction_width");
  expect("[parallel]\ndata = 4\nreduction_width = 2", "reduction_width is 2");
  expect("[optimizer]\nmin_learning_rate = 1.0", "above learning_rate");
  expect("[optimizer]\ndecay_steps = 0", "schedule = \"constant\"");
  expect("[data]\nsequence_length = 9\n[parallel]\ncontext = 2",
         "multiple of 2 x [parallel] context = 4");
  expect("[parallel]\nvirtual_stages = 2", "pipeline is 1");
  expect("[parallel]\ntensor = 4194304\npipeline = 2097152\ncontext = 2097152", "smaller degrees");
  expect("[batch]\nglobal_sequences = 16384\n[data]\nsequence_length = 131072",
         "is 2147483648 tokens: expected at most 2147483647");
  expect("[validate]\nevery_steps = 5", "validation is empty");
  expect("[validate]\nbefore_training = true", "validation is empty");
  expect("[model]\nhf_config = \"\"", "says nothing about the model");
  expect("[run]\ndir = \"\"", "dir is empty");
  for (const char* nodes : {"0", "", "x", "4:2", "2:", ":3", "1:2:3", "-1", "1 "}) {
    expect(std::string("[launch]\nnodes = \"") + nodes + "\"", "MIN:MAX");
  }
  for (const char* address : {"9100", ":9100", "host:", "host:0", "host:70000", "host:x"}) {
    expect(std::string("[log]\nprometheus = \"") + address + "\"", "host:port");
  }
  EXPECT_EQ(parse("[launch]\nnodes = \"2:8\"\n[log]\nprometheus = \"127.0.0.1:9100\"").launch.nodes,
            "2:8");
  EXPECT_EQ(parse("[optimizer]\nschedule = \"constant\"\ndecay_steps = 0").optimizer.decay_steps,
            0);
}

TEST(Config, TrainingNeedsACorpusAndATokenizer) {
  EXPECT_THROW(check_config(parse(""), "demo.toml"), Error);
  EXPECT_THROW(check_config(parse("[data]\ntrain = \"c.arrow\"\n"), "demo.toml"), Error);
  EXPECT_NO_THROW(check_config(parse(kMinimal), "demo.toml"));
}

TEST(Config, LoadsAFile) {
  const std::string path = testing::TempDir() + "/load_config.toml";
  std::ofstream(path) << kMinimal;
  const std::vector<std::string> overrides = {"run.steps=3"};
  EXPECT_EQ(load_config(path, overrides).run.steps, 3);
  try {
    load_config("/nowhere/demo.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(std::string(error.what()),
              "configuration: cannot open /nowhere/demo.toml: No such file or directory (2)");
  }
}

// Fills every key with random valid values.
class RandomConfig {
 public:
  explicit RandomConfig(uint32_t seed) : random_(seed) {}

  Config draw() {
    Config config;
    for (const ConfigField& field : config_fields()) {
      limits_ = &field.limits;
      std::visit([&](auto* value) { fill(value); }, field.value(config));
    }
    config.run.epochs = 0;  // printed configurations have them converted to steps
    config.run.tokens = 0;
    config.model.inline_keys = {{"hidden_size", random_()},
                                {"rms_norm_eps", uniform()},
                                {"tie_word_embeddings", random_() % 2 == 0},
                                {"hidden_act", text()},
                                {"rope_scaling", {{"rope_type", text()}, {"factor", uniform()}}},
                                {"eos_token_id", {1, 2, random_()}}};
    return config;
  }

 private:
  double uniform() { return std::uniform_real_distribution<double>(1e-9, 1)(random_); }
  std::string text() {
    static constexpr const char* kPieces[] = {"a", "\"", "\\", "\n", "\t", "\x01", "\x7f", "é",
                                              "😀", "#",  "'",  "=",  " ",  "\r",   "$",    "{"};
    std::string text;
    for (uint32_t left = random_() % 12; left > 0; --left) {
      text += kPieces[random_() % std::size(kPieces)];
    }
    return text;
  }
  void fill(bool* value) { *value = random_() % 2 == 0; }
  void fill(int64_t* value) {
    *value =
        static_cast<int64_t>(limits_->minimum + uniform() * (limits_->maximum - limits_->minimum));
  }
  void fill(double* value) {
    *value = limits_->minimum + uniform() * (limits_->maximum - limits_->minimum);
    if (random_() % 4 == 0) *value = limits_->maximum / 2;
  }
  void fill(std::vector<DataSource>* value) {
    for (uint32_t left = random_() % 4; left > 0; --left) {
      value->push_back({"a" + text(), 0.125 + uniform(), "b" + text()});
    }
  }
  void fill(std::string* value) {
    const auto& choices = limits_->choices;
    *value = choices.empty() ? text() : std::string(choices[random_() % choices.size()]);
  }

  std::mt19937 random_;
  const ConfigLimits* limits_ = nullptr;
};

TEST(Config, PrintedFormReadsBackIdentically) {
  EXPECT_EQ(parse_config(config_text(Config{}), "c"), Config{});  // with every key printed
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Config config = RandomConfig(seed).draw();
    const std::string text = config_text(config);
    const Config read = parse_config(text, "printed");
    EXPECT_EQ(read, config) << text;
    EXPECT_EQ(config_text(read), text);
  }
}

TEST(Config, ConfigDirIsTheFolderOfTheFile) {
  const std::string folder =
      fs::path(testing::TempDir() + "/config_dir_test").lexically_normal().string();
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/run.toml";
  std::ofstream(path) << "[run]\ndir = \"{config_dir}\"\n[data]\ntrain = "
                         "\"{config_dir}/../c.arrow\"\ntokenizer = \"tok\"\n";
  const std::vector<std::string> overrides = {"data.validation={config_dir}/v.arrow"};
  const Config config = load_config(path, overrides);
  EXPECT_EQ(config.run.dir, folder);
  EXPECT_EQ(config.data.train, fs::path(testing::TempDir() + "/c.arrow").lexically_normal());
  EXPECT_EQ(config.data.tokenizer, "tok");
  EXPECT_EQ(config.data.validation, folder + "/v.arrow");
  for (const char* wrong : {"a/{config_dir}", "{config_dir}x"}) {
    const std::vector<std::string> mistake = {std::string("data.train=") + wrong};
    EXPECT_THROW(load_config(path, mistake), Error) << wrong;
  }
}

TEST(Config, AcceptsChangesByName) {
  EXPECT_EQ(parse_accepted_changes(""), std::vector<std::string>{});
  EXPECT_EQ(parse_accepted_changes(" data.train,model.rope_theta  precision.mode,"),
            (std::vector<std::string>{"data.train", "model.rope_theta", "precision.mode"}));
  EXPECT_EQ(error_of("[run]\naccept_changes = \"model.rope_thet\"\n"),
            "demo.toml: [run] accept_changes names \"model.rope_thet\": did you mean "
            "model.rope_theta?");
  EXPECT_NE(error_of("[run]\naccept_changes = \"optimizer.name\"\n").find("set model.init_from"),
            std::string::npos);
  EXPECT_NE(error_of("[run]\naccept_changes = \"everything\"\n").find("expected any of"),
            std::string::npos);
}

TEST(Config, InitFromNamesTheModel) {
  EXPECT_EQ(parse("[model]\ninit_from = \"hf\"\n").model.hf_config, "");
  EXPECT_EQ(parse("[model]\ninit_from = \"hf\"\nhf_config = \"x.json\"\n").model.hf_config,
            "x.json");
  EXPECT_NE(error_of("[model]\nhf_config = \"\"\n").find("or init_from"), std::string::npos);
  ModelConfig model = parse("[model]\ninit_from = \"hf\"\nrope_theta = 5.0\n").model;
  EXPECT_EQ(hf_config_json(model, {{"rope_theta", 1}, {"hidden_size", 2}}).dump(),
            R"({"hidden_size":2,"rope_theta":5.0})");
}

// `page` with what stands between the marks of `name` replaced.
std::string with_part(const std::string& page, const std::string& name, const std::string& part) {
  const std::string begin = fmt::format("<!-- {}: begin -->\n\n", name),
                    end = fmt::format("\n<!-- {}: end -->", name);
  const size_t from = page.find(begin), to = page.find(end);
  EXPECT_NE(from, std::string::npos) << name;
  EXPECT_NE(to, std::string::npos) << name;
  if (from == std::string::npos || to == std::string::npos) return page;
  return page.substr(0, from + begin.size()) + part + page.substr(to);
}

TEST(Config, DocumentationHoldsTheReference) {
  const fs::path page = fs::path(kSourceFolder) / "docs/configuration.md";
  const std::string text = read_file(page);
  const std::string expected =
      with_part(with_part(text, "words", other_words_table()), "reference", config_reference());
  const fs::path copy = fs::absolute("configuration.md");  // stays, beside the program
  if (text != expected) std::ofstream(copy) << expected;
  EXPECT_TRUE(text == expected) << "docs/configuration.md is out of date; what it should be: "
                                << copy.string();
}

TEST(Config, TableNamesEachKeyAndPlaceOnce) {
  std::set<std::string> names;
  std::set<const void*> places;
  Config config;
  for (const ConfigField& field : config_fields()) {
    names.insert(std::string(field.section) + "." + std::string(field.key));
    std::visit([&](auto* value) { places.insert(value); }, field.value(config));
    EXPECT_FALSE(field.help.empty()) << field.key;
  }
  EXPECT_EQ(names.size(), config_fields().size());
  EXPECT_EQ(places.size(), config_fields().size());
}

TEST(ConfigSources, NameWhatIsWrongWithThem) {
  const std::string good = "[[data.source]]\npath = \"a\"\n";
  EXPECT_THAT(
      error_of("[data]\n" + good + "[[data.source]]\npath = \"b\"\nwieght = 1\n"),
      testing::HasSubstr("[[data.source]], number 2: unknown key wieght: did you mean weight?"));
  EXPECT_THAT(error_of("[data]\n[[data.source]]\npath = \"b\"\nweight = 0\n"),
              testing::HasSubstr("number 1: weight is 0: expected a number above 0"));
  EXPECT_THAT(error_of("[data]\n[[data.source]]\nweight = 1\n"),
              testing::HasSubstr("there is no path"));
  EXPECT_THAT(error_of("[data]\n[[data.source]]\npath = 3\n"),
              testing::HasSubstr("path is 3: expected a string in quotes"));
  EXPECT_THAT(error_of("[data]\ntrain = [\"a\", \"b\"]\n"),
              testing::HasSubstr("[[data.source]] with a path"));
}

}  // namespace
}  // namespace skein
