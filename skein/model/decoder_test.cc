#include "skein/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "skein/base/error.h"
#include "skein/model/llama/llama.h"

namespace skein {
namespace {

using testing::HasSubstr;

Json small() {
  return {{"model_type", "llama"},    {"hidden_size", 48},        {"num_hidden_layers", 2},
          {"num_attention_heads", 6}, {"num_key_value_heads", 2}, {"intermediate_size", 64},
          {"vocab_size", 97}};
}

const LlamaConstants& of(const DecoderConfig& config) { return config.constants<LlamaConstants>(); }

Json with(const std::string& key, Json value) {
  Json json = small();
  json[key] = std::move(value);
  return json;
}

struct Refusal {
  ErrorCode code;
  std::string message;
};

Refusal refusal(const Json& json) {
  try {
    parse_decoder(json, "model/config.json");
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "accepted: " << json.dump();
  return {};
}

TEST(DecoderConfig, TakesTheDefaultsOfTransformers) {
  const DecoderConfig config = parse_decoder({{"hidden_size", 48},
                                              {"num_hidden_layers", 2},
                                              {"num_attention_heads", 6},
                                              {"intermediate_size", 64},
                                              {"rope_scaling", nullptr},
                                              {"head_dim", nullptr}},
                                             "[model]", 4096);
  EXPECT_EQ(config.vocab_size, 4096);
  EXPECT_EQ(config.num_key_value_heads, 6);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(of(config).rms_norm_eps, 1e-6);
  EXPECT_EQ(of(config).rope, RopeConfig());
  EXPECT_FALSE(config.tie_word_embeddings || of(config).qkv_bias || of(config).mlp_bias);
  EXPECT_FALSE(config.bos_token_id || config.pad_token_id);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(DecoderConfig, ReadsBothSpellingsOfRope) {
  const Json llama3 = {{"factor", 8},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  Json old_spelling = with("rope_theta", 5e5);
  old_spelling["rope_scaling"] = llama3;
  old_spelling["rope_scaling"]["rope_type"] = "llama3";
  Json new_spelling = with("rope_parameters", old_spelling["rope_scaling"]);
  new_spelling["rope_parameters"]["rope_theta"] = 500000;
  const DecoderConfig config = parse_decoder(old_spelling, "old");
  EXPECT_EQ(config, parse_decoder(new_spelling, "new"));
  EXPECT_EQ(of(config).rope.theta, 500000);
  EXPECT_EQ(of(config).rope.scaling, (RopeScaling{RopeScalingKind::kLlama3, 8, 1, 4, 8192}));

  const DecoderConfig linear =
      parse_decoder(with("rope_scaling", {{"type", "linear"}, {"factor", 2.5}}), "");
  EXPECT_EQ(of(linear).rope.scaling, (RopeScaling{RopeScalingKind::kLinear, 2.5}));
  const DecoderConfig plain =
      parse_decoder(with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 123}}), "");
  EXPECT_EQ(of(plain).rope.theta, 123);
}

TEST(DecoderConfig, WhatItWritesReadsBackEqual) {
  Json json = with("rope_scaling", {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 32}});
  json.update({{"rope_theta", 12345.678},
               {"head_dim", 20},
               {"attention_bias", true},
               {"tie_word_embeddings", true},
               {"bos_token_id", 1},
               {"eos_token_id", {2, 96}},
               {"rms_norm_eps", 1e-5},
               {"max_position_embeddings", 256}});
  const DecoderConfig config = parse_decoder(json, "in");
  EXPECT_EQ(config.eos_token_ids, (std::vector<int64_t>{2, 96}));
  const Json written = to_hugging_face_json(config, DType::kBF16);
  EXPECT_EQ(parse_decoder(parse_json(written.dump(), "out"), "out"), config);
  EXPECT_EQ(parse_hugging_face_dtype(written, "out"), DType::kBF16);

  const DecoderConfig linear =
      parse_decoder(with("rope_scaling", {{"type", "linear"}, {"factor", 2.5}}), "in");
  EXPECT_EQ(parse_decoder(to_hugging_face_json(linear, DType::kF32), "out"), linear);
}

TEST(DecoderConfig, RefusesImpossibleSizes) {
  struct {
    const char* key;
    Json value;
    const char* message;
  } const kCases[] = {
      {"num_attention_heads", 5,
       "num_attention_heads is 5, expected a divisor of hidden_size 48, such as 4 or 6"},
      {"num_key_value_heads", 4,
       "num_key_value_heads is 4, expected a divisor of num_attention_heads 6, such as 3 or 6"},
      {"num_key_value_heads", 0, "num_key_value_heads is 0, expected an integer from 1"},
      {"head_dim", 7, "head_dim 6 or 8 would do"},
      {"head_dim", 1 << 20, "num_attention_heads 6 times head_dim 1048576"},
      {"hidden_size", -48, "hidden_size is -48, expected an integer from 1"},
      {"hidden_size", "48", "hidden_size is \"48\""},
      {"hidden_size", 48.5, "hidden_size is 48.5"},
      {"hidden_size", true, "hidden_size is true"},
      {"hidden_size", nullptr, "hidden_size is missing"},
      {"hidden_size", std::numeric_limits<uint64_t>::max(), "is 18446744073709551615"},
      {"num_hidden_layers", int64_t{1} << 40, "num_hidden_layers is 1099511627776"},
      {"vocab_size", nullptr, "vocab_size is missing"},
      {"vocab_size", 1e300, "vocab_size is 1e+300"},
      {"rms_norm_eps", 0, "rms_norm_eps is 0, expected a number from 1e-12"},
      {"rope_theta", -1, "rope_theta is -1"},
      {"initializer_range", 11, "initializer_range is 11"},
      {"bos_token_id", 97, "bos_token_id is 97, expected an integer from -1 to 96"},
      {"eos_token_id", {1, -2}, "eos_token_id is [1,-2]"},
      {"tie_word_embeddings", "false", "tie_word_embeddings is \"false\", expected true or false"},
      {"rope_scaling", 4, "rope_scaling is 4, expected a JSON object"},
      {"rope_scaling", {{"type", "linear"}}, "rope_scaling.factor is missing"},
      {"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}, "rope_scaling.factor is 0.5"},
  };
  for (const auto& one : kCases) {
    const Refusal found = refusal(with(one.key, one.value));
    EXPECT_THAT(found.message, HasSubstr(one.message)) << one.key;
    EXPECT_THAT(found.message, HasSubstr("model/config.json: ")) << one.key;
    EXPECT_NE(found.code, ErrorCode::kUnsupported) << one.key;
  }
  EXPECT_THAT(refusal(Json::array({1, 2})).message, HasSubstr("expected a JSON object"));
}

TEST(DecoderConfig, RefusesWhatSkeinDoesNotHave) {
  struct {
    const char* key;
    Json value;
    const char* message;
  } const kCases[] = {
      {"model_type", "gpt_neox", "model_type is \"gpt_neox\", expected"},
      {"hidden_act", "gelu", "hidden_act is \"gelu\", expected \"silu\""},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 4}},
       "rope_scaling.type is \"yarn\", expected \"default\", \"linear\" or \"llama3\""},
      {"rope_parameters", {{"rope_type", "dynamic"}}, "rope_parameters.rope_type is \"dynamic\""},
      {"quantization_config", {{"bits", 4}}, "quantization_config is {\"bits\":4}"},
      {"architectures", {"LlamaForSequenceClassification"}, "architectures is"},
      {"attention_dropout", 0.1, "attention_dropout is 0.1"},
      {"partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"},
  };
  for (const auto& one : kCases) {
    const Refusal found = refusal(with(one.key, one.value));
    EXPECT_THAT(found.message, HasSubstr(one.message)) << one.key;
    EXPECT_EQ(found.code, ErrorCode::kUnsupported) << one.key;
  }
  EXPECT_THROW(parse_hugging_face_dtype({{"torch_dtype", "int8"}}, "x"), Error);
}

TEST(DecoderConfig, RefusesSpellingsThatDisagree) {
  Json theta = with("rope_theta", 10000);
  theta["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000}};
  EXPECT_THAT(refusal(theta).message, HasSubstr("keep one of the two"));
  Json scaling = with("rope_scaling", {{"type", "linear"}, {"factor", 2}});
  scaling["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4}};
  EXPECT_THAT(refusal(scaling).message, HasSubstr("keep one of the two"));
}

TEST(DecoderConfig, TheLargestModelsDoNotOverflow) {
  const DecoderConfig config = parse_decoder({{"hidden_size", 1 << 20},
                                              {"num_hidden_layers", 1 << 14},
                                              {"num_attention_heads", 1},
                                              {"intermediate_size", 1 << 20},
                                              {"vocab_size", 1 << 28}},
                                             "largest");
  EXPECT_GT(num_parameters(config), 0);
  EXPECT_LT(num_parameters(config), std::numeric_limits<int64_t>::max() / 64);
}

}  // namespace
}  // namespace skein
