#include "skein/model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "skein/base/error.h"
#include "skein/base/text/foreign_keys.h"
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

// Every key of a config.json is used, refused, or in the table of those that do not matter; what is
// in none is kept, for a line.
TEST(DecoderConfig, LeavesNoKeyUnseen) {
  EXPECT_TRUE(parse_decoder(small(), "x").unknown_keys.empty());
  const std::vector<std::string> unknown = {"kv_shared_layers"};
  EXPECT_EQ(parse_decoder(with("kv_shared_layers", 2), "x").unknown_keys, unknown);
  for (const ModelKey& key : model_keys()) {
    const ForeignKey* row = find_foreign_key(ForeignJson::kConfig, key.key);
    EXPECT_TRUE(row == nullptr || row->use == KeyUse::kUsed) << key.key;
  }
  for (const FamilyDef* family : decoder_families()) {
    Json json = small();
    json["model_type"] = family->model_type;
    const Json written = to_hugging_face_json(parse_decoder(json, "x"), DType::kF32);
    EXPECT_TRUE(unknown_keys(ForeignJson::kConfig, written).empty()) << written;
    EXPECT_NO_THROW(check_foreign_values(ForeignJson::kConfig, written, "x"));
  }
}

TEST(DecoderConfig, RefusesBiasesThatTheFamilyCannotHave) {
  const auto biased = [](const char* family, const char* key) {
    Json json = with(key, true);
    json["model_type"] = family;
    return json;
  };
  EXPECT_THAT(refusal(biased("mistral", "attention_bias")).message,
              HasSubstr("attention_bias is true, expected false: a mistral model has none"));
  EXPECT_THAT(refusal(biased("qwen3", "mlp_bias")).message, HasSubstr("a qwen3 model has none"));
  EXPECT_NO_THROW(parse_decoder(biased("qwen2", "attention_bias"), "x"));
  EXPECT_NO_THROW(parse_decoder(biased("llama", "mlp_bias"), "x"));
}

TEST(DecoderConfig, TakesTheDecoderAlone) {
  EXPECT_NO_THROW(parse_decoder(with("architectures", {"LlamaModel"}), "x"));
  EXPECT_THAT(refusal(with("architectures", {"LlamaForSequenceClassification"})).message,
              HasSubstr("expected [\"LlamaForCausalLM\"]"));
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
       {{"type", "mrope"}, {"mrope_section", {1, 1, 2}}},
       "rope_scaling.type is \"mrope\", expected \"default\", \"linear\", \"dynamic\", \"yarn\", "
       "\"longrope\" or \"llama3\""},
      {"rope_scaling",
       {{"rope_type", "default"}, {"mrope_section", {1, 1, 2}}},
       "rope_scaling.mrope_section is [1,1,2], expected none: of RoPE Skein knows rope_type, "},
      {"rope_parameters", {{"rope_type", "ntk"}}, "rope_parameters.rope_type is \"ntk\""},
      {"rope_parameters", {{"full_attention", Json::object()}}, "rope_parameters.full_attention"},
      {"layer_types", {"chunked_attention", "full_attention"}, "layer_types is"},
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

TEST(DecoderConfig, RefusesImpossibleRotaryEmbeddings) {
  struct {
    Json scaling;
    const char* message;
  } const kCases[] = {
      {{{"type", "yarn"}}, "rope_scaling.factor is missing"},
      {{{"type", "yarn"}, {"factor", 4}, {"attention_factor", -1}}, "attention_factor is -1"},
      {{{"type", "yarn"}, {"factor", 4}, {"truncate", 1}}, "truncate is 1, expected true or false"},
      {{{"type", "dynamic"}}, "rope_scaling.factor is missing"},
      {{{"type", "longrope"}, {"long_factor", {1, 1, 1, 1}}}, "short_factor is missing"},
      {{{"type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {1, 1, 1, 1}}},
       "short_factor is [1,1], expected 4 numbers"},
      {{{"type", "longrope"}, {"short_factor", {1, 1, 1, 0}}, {"long_factor", {1, 1, 1, 1}}},
       "short_factor is [1,1,1,0], expected 4 numbers"},
      {{{"type", "linear"}, {"rope_type", "yarn"}, {"factor", 4}},
       "rope_scaling.type is \"linear\", expected \"yarn\", as rope_type says"},
  };
  for (const auto& one : kCases) {
    const Refusal found = refusal(with("rope_scaling", one.scaling));
    EXPECT_THAT(found.message, HasSubstr(one.message)) << one.scaling;
    EXPECT_NE(found.code, ErrorCode::kUnsupported) << one.scaling;
  }
}

TEST(DecoderConfig, ReadsEverySpellingOfYarnAndLongrope) {
  const Json yarn = {{"factor", 4}, {"original_max_position_embeddings", 512}};
  Json older = with("rope_scaling", yarn), newer = with("rope_parameters", yarn);
  older["rope_scaling"]["type"] = "yarn";
  older["rope_theta"] = newer["rope_parameters"]["rope_theta"] = 5e5;
  newer["rope_parameters"]["rope_type"] = "yarn";
  EXPECT_EQ(parse_decoder(older, "older"), parse_decoder(newer, "newer"));
  EXPECT_EQ(of(parse_decoder(newer, "newer")).rope.scaling,
            (RopeScaling{RopeScalingKind::kYarn, 4, 1, 4, 512}));

  // As Phi has it: the length beside rope_scaling, and no factor.
  Json longrope = with("rope_scaling", {{"type", "longrope"},
                                        {"short_factor", {1, 1, 1, 1}},
                                        {"long_factor", {2, 2, 2, 2}},
                                        {"original_max_position_embeddings", 7}});
  longrope["original_max_position_embeddings"] = 512;
  const DecoderConfig config = parse_decoder(longrope, "longrope");
  EXPECT_EQ(of(config).rope.scaling.original_max_position_embeddings, 512);
  EXPECT_EQ(rope_attention_factor(of(config).rope.scaling),
            std::sqrt(1 + std::log(4.0) / std::log(512.0)));
  const Json written = to_hugging_face_json(config, DType::kF32);
  EXPECT_EQ(written.at("original_max_position_embeddings"), 512);
  EXPECT_EQ(written.at("rope_scaling").at("original_max_position_embeddings"), 512);
  EXPECT_FALSE(written.at("rope_scaling").contains("factor"));
  EXPECT_EQ(parse_decoder(written, "written"), config);
}

// As transformers' configuration and modelling code have it, of each family.
TEST(DecoderConfig, AWindowLimitsTexts) {
  struct {
    const char* family;
    Json keys;
    int64_t longest;
    Json written = nullptr;  // that differ from what was read
  } const kCases[] = {
      {"mistral", {{"sliding_window", 64}}, 64},
      {"mistral", {{"sliding_window", nullptr}}, 0},
      {"mistral", Json::object(), 4096, {{"sliding_window", 4096}}},
      {"mistral",
       {{"sliding_window", 64}, {"use_sliding_window", false}},
       64,
       {{"use_sliding_window", nullptr}}},  // which Mistral does not know
      {"llama", {{"sliding_window", 64}}, 64},
      {"llama", Json::object(), 0},
      {"qwen2",
       {{"sliding_window", 64}, {"max_window_layers", 0}},
       0,
       {{"use_sliding_window", false}}},
      {"qwen2",
       {{"use_sliding_window", true}, {"sliding_window", 64}, {"max_window_layers", 0}},
       64},
      {"qwen3",
       {{"use_sliding_window", true}, {"sliding_window", 64}, {"max_window_layers", 1}},
       64},
      {"qwen3",
       {{"use_sliding_window", true}, {"sliding_window", 64}, {"max_window_layers", 2}},
       0},
      {"qwen3", {{"use_sliding_window", true}, {"sliding_window", 64}}, 0},  // 28 by default
      {"qwen3",
       {{"use_sliding_window", true}, {"max_window_layers", 0}},
       4096,
       {{"sliding_window", 4096}}},
      {"qwen3", {{"use_sliding_window", true}, {"sliding_window", nullptr}}, 0},
      {"qwen2",
       {{"use_sliding_window", true},
        {"sliding_window", 64},
        {"layer_types", {"full_attention", "sliding_attention"}}},
       64},
      {"qwen2",
       {{"use_sliding_window", true},
        {"sliding_window", 64},
        {"max_window_layers", 0},
        {"layer_types", {"full_attention", "full_attention"}}},
       0},
      {"qwen2",
       {{"sliding_window", nullptr}, {"layer_types", {"full_attention"}}},
       0,
       {{"layer_types", {"full_attention", "full_attention"}}, {"use_sliding_window", false}}},
  };
  for (const auto& one : kCases) {
    Json json = small();
    json.update(one.keys);
    json.update({{"model_type", one.family}, {"max_position_embeddings", 8192}});
    SCOPED_TRACE(json.dump());
    const DecoderConfig config = parse_decoder(json, "in");
    EXPECT_EQ(config.window.tokens.value_or(0), one.longest);
    const TextLimit limit = text_limit(config);
    EXPECT_EQ(limit.tokens, one.longest == 0 ? 8192 : one.longest);
    EXPECT_EQ(limit.key, one.longest == 0 ? "max_position_embeddings" : "sliding_window");

    const Json written = to_hugging_face_json(config, DType::kF32);
    EXPECT_EQ(parse_decoder(written, "written"), config);
    Json expected = one.keys;
    if (!one.written.is_null()) expected.update(one.written);
    for (const auto& [key, value] : expected.items()) {
      EXPECT_EQ(written.value(key, Json()), value) << key;
    }
  }
}

TEST(DecoderConfig, RefusesWindowsThatContradictThemselves) {
  Json json = with("layer_types", {"sliding_attention", "full_attention"});
  EXPECT_THAT(refusal(json).message, HasSubstr("or a sliding_window"));
  json["model_type"] = "qwen2";
  EXPECT_THAT(refusal(json).message, HasSubstr("or use_sliding_window true"));
  json["use_sliding_window"] = true;
  json["num_hidden_layers"] = 3;
  EXPECT_THAT(refusal(json).message, HasSubstr("one for each of the 3 layers"));
  json["sliding_window"] = 0;  // no window, which a configuration in TOML can say
  const DecoderConfig config = parse_decoder(json, "in");
  EXPECT_FALSE(config.window.tokens.has_value());
  EXPECT_EQ(config.window.keys.at("layer_types"),
            Json({"full_attention", "full_attention", "full_attention"}));
  json["sliding_window"] = -1;
  EXPECT_THAT(refusal(json).message, HasSubstr("sliding_window is -1"));
}

// [model] cannot say null: no window where it names none, though transformers has one of 4096.
TEST(DecoderConfig, KeysInAConfigurationNeedNoWindow) {
  Json json = with("model_type", "mistral");
  complete_inline_model(json);
  EXPECT_FALSE(parse_decoder(json, "[model]").window.tokens.has_value());
  json["sliding_window"] = 64;
  complete_inline_model(json);
  EXPECT_EQ(parse_decoder(json, "[model]").window.tokens, 64);
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
