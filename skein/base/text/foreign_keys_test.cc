// testdata/foreign_keys.json is made by scripts/goldens/foreign_keys.py.
#include "skein/base/text/foreign_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ForeignJson kFiles[] = {ForeignJson::kConfig,          ForeignJson::kGenerationConfig,
                                  ForeignJson::kTokenizerConfig, ForeignJson::kSpecialTokensMap,
                                  ForeignJson::kTokenizer,       ForeignJson::kWeightIndex};

const Json& golden() {
  static const Json json = read_json(
      (std::filesystem::path(__FILE__).parent_path() / "testdata/foreign_keys.json").string());
  return json;
}

Json object_of(const Json& keys) {
  Json object = Json::object();
  for (const Json& key : keys) object[key.get<std::string>()] = nullptr;
  return object;
}

TEST(ForeignKeys, EveryKeyThatTransformersWritesIsInATable) {
  for (const auto& [family, values] : golden().at("config").items()) {
    EXPECT_THAT(unknown_keys(ForeignJson::kConfig, values), IsEmpty()) << family;
    // Its defaults are a model that Skein computes.
    EXPECT_NO_THROW(check_foreign_values(ForeignJson::kConfig, values, family));
  }
  const std::pair<const char*, ForeignJson> files[] = {
      {"generation_config", ForeignJson::kGenerationConfig},
      {"tokenizer_config", ForeignJson::kTokenizerConfig},
      {"special_tokens_map", ForeignJson::kSpecialTokensMap},
      {"tokenizer", ForeignJson::kTokenizer}};
  for (const auto& [name, file] : files) {
    EXPECT_THAT(unknown_keys(file, object_of(golden().at(name))), IsEmpty()) << name;
  }
}

TEST(ForeignKeys, EveryRowSaysWhyAndStandsOnce) {
  for (const ForeignJson file : kFiles) {
    std::set<std::string_view> seen;
    for (const ForeignKey& row : foreign_keys(file)) {
      EXPECT_TRUE(seen.insert(row.key).second) << row.key;
      EXPECT_EQ(row.why.empty(), row.use == KeyUse::kUsed) << row.key;
      const bool has_values = row.use == KeyUse::kOnly || row.use == KeyUse::kDraws;
      EXPECT_EQ(row.values.empty(), !has_values) << row.key;
      if (has_values) {
        EXPECT_TRUE(Json::parse(row.values).is_array()) << row.key;
      }
    }
  }
}

TEST(ForeignKeys, WhatChangesTheFunctionIsRefused) {
  const auto error = [](const char* key, const Json& value) {
    return error_of([&] {
      check_foreign_values(ForeignJson::kConfig, {{key, value}}, "m/config.json");
    });
  };
  EXPECT_EQ(error("attention_dropout", 0.1),
            "m/config.json: attention_dropout is 0.1, expected 0: Skein trains without dropout");
  EXPECT_EQ(error("attention_dropout", 0.0), "");
  EXPECT_EQ(error("attention_dropout", nullptr), "");
  EXPECT_THAT(error("pretraining_tp", 2), HasSubstr("pretraining_tp is 2, expected 1"));
  EXPECT_THAT(error("final_logit_softcapping", 30.0), HasSubstr("is 30.0, expected null"));
  EXPECT_THAT(error("qk_layernorm", true), HasSubstr("is true, expected false"));
  EXPECT_THAT(error("quantization_config", {{"bits", 4}}), HasSubstr("quantized weights"));
  EXPECT_THAT(error("partial_rotary_factor", 0.5), HasSubstr("expected 1: the whole head rotates"));
  EXPECT_THAT(error("num_local_experts", 8), HasSubstr("expected 0 or 1"));
}

TEST(ForeignKeys, WhatNoRowNamesIsTold) {
  const Json json = {{"hidden_size", 8}, {"temperature", 1}, {"a", 1},
                     {"b", 1},           {"c", 1},           {"d", 1}};
  const auto unknown = unknown_keys(ForeignJson::kConfig, json);
  EXPECT_THAT(unknown, ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(unknown_keys_text("config.json", unknown),
              HasSubstr("config.json: Skein does not know the keys 'a', 'b', 'c' and 1 more"));
  EXPECT_THAT(unknown_keys_text("x", {"k\n"}), HasSubstr("does not know the key 'k\\n', and goes"));
  EXPECT_EQ(unknown_keys_text("x", {}), "");
  EXPECT_THAT(unknown_keys(ForeignJson::kConfig, Json::array()), IsEmpty());
}

}  // namespace
}  // namespace skein
