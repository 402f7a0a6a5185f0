#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "skein/base/error.h"
#include "skein/compile/step_programs.h"
#include "skein/config/run/identity.h"
#include "skein/ir/graph.h"
#include "skein/model/llama/llama.h"
#include "skein/weights/state_tensors.h"

namespace skein {
namespace {

using Names = std::vector<std::string>;

DecoderConfig small_model() {
  return parse_decoder({{"hidden_size", 32},
                        {"intermediate_size", 64},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 2},
                        {"vocab_size", 64}},
                       "small");
}

// A change of the family's own constants.
template <typename Change>
auto constants(const Change& change) {
  return [change](Config&, DecoderConfig& model, RunContent&) {
    LlamaConstants changed = model.constants<LlamaConstants>();
    change(changed);
    set_constants(model, changed);
  };
}

Config small_config() {
  Config config;
  config.data.train = "/data/corpus.arrow";
  config.data.tokenizer = "/data/tok";
  config.precision.mode = "fp32";
  return config;
}

RunContent small_content() {
  return {.tokenizer = "aaaaaaaaaaaa",
          .tokens = 64,
          .train = CorpusFingerprint{10, 1000, "cccccccccccc"}};
}

Json configuration(const std::function<void(Config&, DecoderConfig&, RunContent&)>& change = {}) {
  Config config = small_config();
  DecoderConfig model = small_model();
  RunContent content = small_content();
  if (change) change(config, model, content);
  return run_configuration(config, model, content);
}

std::vector<Change> changes(const Json& before, const Json& after) {
  const Comparison comparison = compare_configurations(before, after, "manifest.json");
  EXPECT_TRUE(comparison.not_compared.empty());
  return comparison.changes;
}

TEST(CompareConfigurations, OfTheSameRunFindsNothing) {
  EXPECT_EQ(changes_text(changes(configuration(), configuration())), "");
  // Another place of the same files is the same run; so is another way to name the model.
  const Json moved = configuration([](Config& config, DecoderConfig&, RunContent&) {
    config.data.train = "/elsewhere/corpus.arrow";
    config.data.tokenizer = "/elsewhere/tok";
    config.model.hf_config = "another.json";
    config.run.resume = "/x/step-00000010";
    config.run.accept_changes = "data.train";
  });
  EXPECT_EQ(changes_text(changes(configuration(), moved)), "");
  // What only plans read is no part of it.
  const Json planned = configuration([](Config& config, DecoderConfig&, RunContent&) {
    config.plan.hardware = "configs/hardware/h100-8x.toml";
    config.plan.ranks = 8;
  });
  EXPECT_EQ(changes_text(changes(configuration(), planned)), "");
}

TEST(CompareConfigurations, TellsWhatIsAllowedFromWhatIsNot) {
  const auto kind_of = [](const std::function<void(Config&, DecoderConfig&, RunContent&)>& change) {
    const std::vector<Change> found = changes(configuration(), configuration(change));
    EXPECT_EQ(found.size(), 1u) << changes_text(found);
    return found.empty() ? std::pair{std::string(), ChangeKind::kSetting}
                         : std::pair{found[0].key, found[0].kind};
  };
  using C = Config;
  using M = DecoderConfig;
  using R = RunContent;
  const auto expect = [&](const char* key, ChangeKind kind, const auto& change) {
    EXPECT_EQ(kind_of(change), (std::pair{std::string(key), kind}));
  };
  const ChangeKind setting = ChangeKind::kSetting, meaning = ChangeKind::kMeaning,
                   impossible = ChangeKind::kImpossible;
  expect("optimizer.epsilon", setting, [](C& c, M&, R&) { c.optimizer.epsilon = 1e-8; });
  expect("parallel.tensor", setting, [](C& c, M&, R&) { c.parallel.tensor = 2; });
  expect("log.prometheus", setting, [](C& c, M&, R&) { c.log.prometheus = "0.0.0.0:1"; });
  expect("data.validation", setting, [](C&, M&, R& r) { r.validation = {1, 2, "d"}; });
  expect("model.max_position_embeddings", setting,
         [](C&, M& m, R&) { m.max_position_embeddings = 4096; });
  expect("model.eos_token_id", setting, [](C&, M& m, R&) { m.eos_token_ids = {2}; });
  expect("data.sequence_length", meaning, [](C& c, M&, R&) { c.data.sequence_length = 8; });
  expect("data.document_mask", meaning, [](C& c, M&, R&) { c.data.document_mask = false; });
  expect("precision.mode", meaning, [](C& c, M&, R&) { c.precision.mode = "bf16"; });
  expect("data.tokenizer", meaning, [](C&, M&, R& r) { r.tokenizer = "bbbbbbbbbbbb"; });
  expect("data.train", meaning, [](C&, M&, R& r) { r.train->xxh3_128 = "dddddddddddd"; });
  expect("data.train", impossible, [](C&, M&, R& r) { r.train = {10, 1001, "dddddddddddd"}; });
  expect("model.rope_theta", meaning, constants([](LlamaConstants& c) { c.rope.theta = 500000; }));
  expect("model.rms_norm_eps", meaning,
         constants([](LlamaConstants& c) { c.rms_norm_eps = 1e-5; }));
  expect("model.rope_scaling", meaning, constants([](LlamaConstants& c) {
           c.rope.scaling = {.kind = RopeScalingKind::kLinear, .factor = 2};
         }));
  expect("model.attention_bias", impossible,
         constants([](LlamaConstants& c) { c.qkv_bias = c.output_bias = true; }));
  expect("model.num_hidden_layers", impossible, [](C&, M& m, R&) { m.num_hidden_layers = 1; });
  expect("model.tie_word_embeddings", impossible,
         [](C&, M& m, R&) { m.tie_word_embeddings = true; });
  expect("model.vocab_size", impossible, [](C&, M& m, R&) { m.vocab_size = 128; });
  expect("run.seed", impossible, [](C& c, M&, R&) { c.run.seed = 2; });
  expect("batch.global_sequences", setting, [](C& c, M&, R&) { c.batch.global_sequences = 2048; });
  expect("batch.ramp", setting, [](C& c, M&, R&) { c.batch.ramp = "4 until 9"; });
}

// Heads of half the width: every parameter keeps its shape.
// The spans count where a run trains on them alone; a checkpoint that does not record them is of an
// older skein, or of a run that trained on all.
TEST(CompareConfigurations, OtherLossSpansAreAnotherText) {
  const auto with = [](const std::string& spans, const char* loss_on) {
    return configuration([&](Config& config, DecoderConfig&, RunContent& content) {
      config.data.loss_on = loss_on;
      content.train->spans_xxh3_128 = spans;
    });
  };
  const Json marked = with("eeeeeeeeeeee", "completion");
  EXPECT_EQ(changes_text(changes(marked, marked)), "");
  const std::vector<Change> found = changes(marked, with("ffffffffffff", "completion"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "data.train");
  EXPECT_EQ(found[0].kind, ChangeKind::kMeaning);
  EXPECT_EQ(found[0].before,
            "/data/corpus.arrow (10 documents, 1000 bytes, xxh3 cccccccc, loss_spans eeeeeeee)");
  EXPECT_EQ(changes_text(changes(with("", "all"), with("", "all"))), "");
  const std::vector<Change> to_all = changes(marked, with("", "all"));
  ASSERT_EQ(to_all.size(), 1u);
  EXPECT_EQ(to_all[0].key, "data.loss_on");
  EXPECT_EQ(changes(with("", "all"), marked).size(), 1u);
  const Comparison old = compare_configurations(with("", "completion"), marked, "m");
  EXPECT_TRUE(old.changes.empty());
  EXPECT_EQ(old.not_compared, std::vector<std::string>{"the loss spans of the corpus"});

  // The same of sources.
  const auto mixed = [](const std::string& spans) {
    return configuration([&](Config& config, DecoderConfig&, RunContent& content) {
      config.data.loss_on = "completion";
      content.train.reset();
      content.sources = {{"chat", 0.5, {10, 1000, "cccccccccccc", spans}}};
    });
  };
  EXPECT_EQ(changes(mixed("eeeeeeeeeeee"), mixed("ffffffffffff")).at(0).key, "data.source");
  EXPECT_TRUE(compare_configurations(mixed(""), mixed("eeeeeeeeeeee"), "m").changes.empty());
}

TEST(CompareConfigurations, SeesHeadsOfHalfTheWidth) {
  const std::vector<Change> found =
      changes(configuration(), configuration([](Config&, DecoderConfig& model, RunContent&) {
                model.num_attention_heads = 8;
                model.num_key_value_heads = 4;
                model.head_dim = 4;
              }));
  EXPECT_EQ(
      changes_text(found),
      "model.head_dim 8 → 4, model.num_attention_heads 4 → 8, model.num_key_value_heads 2 → 4");
  for (const Change& change : found) EXPECT_EQ(change.kind, ChangeKind::kMeaning) << change.key;
}

// A checkpoint of an older skein has no decay_biases: its run decayed them.
TEST(CompareConfigurations, OfAnOlderRunTheRuleOfWeightDecayIsKnown) {
  Json older = configuration();
  std::string text = older.at("config");
  for (const char* line : {"decay_biases = true\n", "decay_embeddings = true\n"}) {
    const size_t at = text.find(line);
    ASSERT_NE(at, text.npos) << line;
    text.erase(at, std::string(line).size());
  }
  older["config"] = text;
  EXPECT_TRUE(changes(older, configuration()).empty());
  EXPECT_EQ(
      changes_text(changes(older, configuration([](Config& config, DecoderConfig&, RunContent&) {
                             config.optimizer.decay_biases = config.optimizer.decay_embeddings =
                                 false;
                           }))),
      "optimizer.decay_biases true → false, optimizer.decay_embeddings true → false");
}

TEST(CompareConfigurations, OfAnOlderCheckpointSaysWhatItCannotTell) {
  Json older = configuration();
  older.erase("content");
  const Comparison comparison = compare_configurations(
      older, configuration([](Config& config, DecoderConfig& model, RunContent&) {
        config.data.document_mask = false;
        LlamaConstants constants = model.constants<LlamaConstants>();
        constants.rope.theta = 1e6;
        set_constants(model, constants);
      }),
      "manifest.json");
  EXPECT_EQ(comparison.not_compared, (Names{"the tokenizer", "the text of the corpus"}));
  EXPECT_EQ(changes_text(comparison.changes),
            "data.document_mask true → false, model.rope_theta 10000.0 → 1000000.0");
  for (const Json& opaque : {Json(), Json::object(), Json("text")}) {
    EXPECT_EQ(compare_configurations(opaque, configuration(), "m").not_compared,
              (Names{"the configuration", "the model", "the tokenizer", "the text of the corpus"}));
  }
  // A key that one of the two versions does not know is no change.
  Json without = configuration();
  std::string text = without.at("config");
  text.erase(text.find("sums = "), text.find('\n', text.find("sums = ")) - text.find("sums = "));
  without["config"] = text + "\n[other]\nkey = 1\n";
  EXPECT_EQ(changes_text(changes(without, configuration())), "");
}

TEST(CompareConfigurations, RefusesAConfigurationThatDoesNotRead) {
  Json damaged = configuration();
  damaged["config"] = "[run\n";
  EXPECT_THROW(compare_configurations(damaged, configuration(), "m"), Error);
  damaged = configuration();
  damaged["model"] = Json{{"hidden_size", -1}};
  EXPECT_THROW(compare_configurations(damaged, configuration(), "m"), Error);
}

std::string refusal(std::span<const Change> changes, const std::string& accepted) {
  try {
    refuse_changes(changes, accepted, "run/step-00000020", "Go on otherwise");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(RefuseChanges, NamesKeysValuesAndWhatAllowsThem) {
  const Change rate = {"optimizer.learning_rate", "0.1", "0.2", ChangeKind::kSetting};
  const Change theta = {"model.rope_theta", "1", "2", ChangeKind::kMeaning};
  const Change text = {"data.train", "a", "b", ChangeKind::kMeaning};
  const Change layers = {"model.num_hidden_layers", "2", "1", ChangeKind::kImpossible};
  EXPECT_EQ(refusal(std::vector{rate}, ""), "");
  EXPECT_EQ(refusal(std::vector{rate, theta}, "model.rope_theta"), "");
  EXPECT_EQ(refusal(std::vector{rate, theta, text}, "data.train"),
            "run/step-00000020 was trained otherwise: model.rope_theta is 1 there and 2 in the "
            "configuration. Go on otherwise; to change it on purpose, set run.accept_changes = "
            "\"data.train, model.rope_theta\"");
  EXPECT_NE(refusal(std::vector{theta, layers}, "model.rope_theta")
                .find("does not fit this configuration: model.num_hidden_layers is 2 there and 1"),
            std::string::npos);
  EXPECT_NE(refusal({}, "model.num_hidden_layers").find("accept_changes names"), std::string::npos);
}

// What is asked of a checkpoint is what training stores.
TEST(ScheduleThatFollows, NamesWhatKeepsTheOneOfBefore) {
  const std::vector<Change> longer = {
      {"run.steps", "100", "1000", ChangeKind::kSetting},
      {"optimizer.warmup_steps", "10", "100", ChangeKind::kSetting},
      {"optimizer.decay_steps", "90", "900", ChangeKind::kSetting},
  };
  Config config;
  config.run.steps = 1000;
  config.optimizer.warmup_steps = 100;
  config.optimizer.decay_steps = 900;
  EXPECT_EQ(schedule_that_follows(config, longer, 101),
            "the learning rate of step 101 is 0.0003 and was to be 3e-05: its schedule follows "
            "from run.steps, which is 1000 now; --set optimizer.warmup_steps=10 --set "
            "optimizer.decay_steps=90 keeps the earlier schedule");
  std::vector<Change> faster = longer;
  faster.push_back({"optimizer.learning_rate", "0.0001", "0.0003", ChangeKind::kSetting});
  EXPECT_EQ(schedule_that_follows(config, faster, 101),
            "the learning rate of step 101 is 0.0003 and was to be 3e-05: its schedule follows "
            "from run.steps, which is 1000 now, and optimizer.learning_rate was 0.0001; --set "
            "optimizer.warmup_steps=10 --set optimizer.decay_steps=90 keeps the earlier schedule "
            "with the new rate");
  EXPECT_EQ(schedule_that_follows(config, std::span(faster).last(1), 101), "");
  config.origin.warmup_given = true;
  EXPECT_EQ(schedule_that_follows(config, longer, 101).find("warmup"), std::string::npos);
  // In the same warm-up the end of the decay changes nothing yet.
  EXPECT_EQ(schedule_that_follows(config, longer, 50), "");
  config.origin.decay_given = true;
  EXPECT_EQ(schedule_that_follows(config, longer, 101), "");
}

// No row is longer than a window, so that one changes what is exported, and nothing where it is the
// same in other words. Where RoPE follows from max_position_embeddings, that key has a meaning.
TEST(CompareModels, KnowsWhichKeysChangeTheFunction) {
  const auto model = [](const Json& keys) {
    Json json = {{"hidden_size", 32},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 4},
                 {"intermediate_size", 64},
                 {"vocab_size", 64},
                 {"num_key_value_heads", 2},
                 {"max_position_embeddings", 256}};
    json.update(keys);
    return parse_decoder(json, "test");
  };
  const auto found = [&](const Json& before, const Json& after, bool in_export = true) {
    return compare_models(model(before), model(after), in_export);
  };
  const Json none = {{"model_type", "mistral"}, {"sliding_window", nullptr}};
  const Json window = {{"model_type", "mistral"}, {"sliding_window", 64}};
  ASSERT_EQ(found(none, window).size(), 1u);
  EXPECT_EQ(found(none, window)[0].key, "model.sliding_window");
  EXPECT_EQ(found(none, window)[0].kind, ChangeKind::kSetting);
  EXPECT_TRUE(found(none, window, false).empty());
  EXPECT_TRUE(found({{"model_type", "qwen2"}},
                    {{"model_type", "qwen2"}, {"sliding_window", 64}, {"max_window_layers", 1}})
                  .empty());

  const Json yarn = {
      {"type", "yarn"}, {"factor", nullptr}, {"original_max_position_embeddings", 32}};
  const auto longer = found({{"rope_scaling", yarn}},
                            {{"rope_scaling", yarn}, {"max_position_embeddings", 512}}, false);
  ASSERT_EQ(longer.size(), 1u);
  EXPECT_EQ(longer[0].key, "model.max_position_embeddings");
  EXPECT_EQ(longer[0].kind, ChangeKind::kMeaning);
}

TEST(NeededTensors, AreThoseThatTrainingStores) {
  for (const bool tied : {false, true}) {
    for (const char* mode : {"fp32", "bf16", "bf16-sr", "mixed", "fp8"}) {
      for (const char* moments : {"fp32", "bf16"}) {
        SCOPED_TRACE(std::string(mode) + " " + moments);
        DecoderConfig model = small_model();
        model.tie_word_embeddings = tied;
        set_constants(model, {.qkv_bias = tied, .output_bias = tied, .mlp_bias = tied});
        Config config = small_config();
        config.precision = {mode, moments};
        config.data.sequence_length = 16;
        config.batch = {.global_sequences = 1, .micro_sequences = 1};
        const StepSpec spec = step_spec(config, model, parallel_layout(config, model, 1, 0));
        std::map<std::string, std::string> stored, needed;
        for (const StateTensor& tensor : state_tensors(training_graphs(spec).training, model)) {
          stored[tensor.name] =
              std::string(dtype_name(tensor.spec.dtype)) + tensor.spec.shape.to_string();
        }
        for (const NeededTensor& tensor : needed_tensors(model, config)) {
          needed[tensor.name] = std::string(dtype_name(tensor.dtype)) + tensor.shape.to_string();
        }
        EXPECT_EQ(stored, needed);
      }
    }
  }
}

}  // namespace
}  // namespace skein
