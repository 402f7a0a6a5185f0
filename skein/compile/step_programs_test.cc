#include "skein/compile/step_programs.h"

#include <gtest/gtest.h>

#include <functional>

namespace skein {
namespace {

TEST(HeadBlockTokens, FillHalfAGigabyteOfADevicesOwnMemory) {
  Backend device, host;
  device.has_own_memory = true;
  const std::pair<int64_t, int64_t> expected[] = {
      {4096, 4096}, {32000, 4096}, {50304, 2624}, {128256, 2048}};
  for (const auto& [vocab_size, tokens] : expected) {
    DecoderConfig model;
    model.vocab_size = vocab_size;
    EXPECT_EQ(head_block_tokens(model, device), tokens) << vocab_size;
    EXPECT_EQ(head_block_tokens(model, host), 0) << "the decoder's choice";
  }
}

// Which of the parameters of a small model with biases weight decay leaves out.
std::vector<std::string> spared(const std::function<void(OptimizerConfig&)>& set) {
  Config config;
  config.model.hf_config.clear();
  config.model.inline_keys = {{"model_type", "qwen3"},
                              {"hidden_size", 8},
                              {"intermediate_size", 16},
                              {"num_hidden_layers", 1},
                              {"num_attention_heads", 2},
                              {"num_key_value_heads", 2},
                              {"head_dim", 4},
                              {"vocab_size", 16},
                              {"attention_bias", true},
                              {"max_position_embeddings", 16}};
  config.data.sequence_length = 8;
  config.batch = {.global_sequences = 1, .micro_sequences = 1};
  set(config.optimizer);
  const DecoderConfig model = model_of(config, std::nullopt);
  const StepSpec spec = step_spec(config, model, parallel_layout(config, model, 1, 0));
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : parameter_specs(model)) {
    if (!spec.update.rule(parameter.name).decays) names.push_back(parameter.name);
  }
  return names;
}

TEST(WeightDecay, LeavesOutWhatIsSet) {
  EXPECT_EQ(spared([](OptimizerConfig&) {}), std::vector<std::string>());
  EXPECT_EQ(spared([](OptimizerConfig& o) { o.decay_embeddings = false; }),
            std::vector<std::string>{"model.embed_tokens.weight"});
  const std::vector<std::string> biases =
      spared([](OptimizerConfig& o) { o.decay_biases = false; });
  EXPECT_EQ(biases.size(), 4u);
  for (const std::string& name : biases) EXPECT_TRUE(name.ends_with("_proj.bias")) << name;
  const std::vector<std::string> norms = spared([](OptimizerConfig& o) { o.decay_norms = false; });
  EXPECT_EQ(norms.size(), 5u);  // of queries and keys, too
  for (const std::string& name : norms) EXPECT_NE(name.find("norm.weight"), name.npos) << name;
  EXPECT_EQ(spared([](OptimizerConfig& o) {
              o.decay_norms = o.decay_biases = o.decay_embeddings = false;
            }).size(),
            10u);
}

}  // namespace
}  // namespace skein
