#include "skein/model/rotary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include "skein/base/files/file.h"
#include "skein/model/llama/llama.h"
#include "tests/places.h"

namespace skein {
namespace {

int64_t ulps_between(float a, float b) {
  return std::abs(int64_t{std::bit_cast<int32_t>(a)} - int64_t{std::bit_cast<int32_t>(b)});
}

RopeConfig rope_of(const DecoderConfig& config) { return config.constants<LlamaConstants>().rope; }

// The goldens are transformers' own tables, written by scripts/goldens/decoders.py.
TEST(Rope, InverseFrequenciesAreThoseOfTransformers) {
  const std::string path = fs::path(kSourceFolder) / "tests/goldens/llama/rope.json";
  const Json cases = read_json(path);
  ASSERT_GT(cases.size(), 10u);
  int64_t total = 0, different = 0;
  for (const Json& one : cases) {
    const DecoderConfig config = parse_decoder(one.at("config"), path);
    const RopeConfig rope = config.constants<LlamaConstants>().rope;
    const std::vector<float> found = rope_inverse_frequencies(rope, config.head_dim);
    const Json& expected = one.at("inverse_frequencies");
    ASSERT_EQ(found.size(), expected.size()) << one.at("config");
    for (size_t i = 0; i < found.size(); ++i) {
      const int64_t ulps = ulps_between(found[i], expected[i].get<float>());
      // An error of one unit in the power becomes up to two in the quotient, and four after
      // smoothing.
      EXPECT_LE(ulps, rope.scaling.kind == RopeScalingKind::kLlama3 ? 4 : 2)
          << one.at("config") << " at " << i;
      different += ulps != 0;
      ++total;
    }
  }
  EXPECT_LE(different * 50, total);  // at most 2 % differ
}

// Of yarn, longrope and dynamic, whose results depend on other keys and on the text's length. The
// ramp of yarn makes a small number of two, one of which may be 2 units off.
TEST(Rope, ScaledFrequenciesAndAttentionFactorsAreThoseOfTransformers) {
  const std::string path = fs::path(kSourceFolder) / "tests/goldens/llama/rope_scaling.json";
  const Json cases = read_json(path);
  ASSERT_GT(cases.size(), 60u);
  int64_t total = 0, different = 0;
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("config").at("rope_parameters").dump().substr(0, 200));
    const DecoderConfig config = parse_decoder(one.at("config"), path);
    const RopeConfig rope = rope_of(config);
    const int64_t length = one.at("text_length");
    const std::vector<float> found = rope_inverse_frequencies(rope, config.head_dim, length);
    EXPECT_DOUBLE_EQ(rope_attention_factor(rope.scaling), one.at("attention_factor"));
    const Json& expected = one.at("inverse_frequencies");
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const int64_t ulps = ulps_between(found[i], expected[i].get<float>());
      EXPECT_LE(ulps, 4) << "at " << i;
      different += ulps != 0;
      ++total;
    }
    // What an export says gives the same again.
    const Json written = to_hugging_face_json(config, DType::kF32);
    EXPECT_EQ(rope_of(parse_decoder(written, "written")), rope);
  }
  EXPECT_LE(different * 20, total);
}

TEST(Rope, TheAttentionFactorScalesCosinesAndSines) {
  RopeConfig rope;
  rope.scaling.kind = RopeScalingKind::kYarn;
  rope.scaling.original_max_position_embeddings = 32;
  rope.scaling.attention_factor = 1;
  const std::vector<float> plain = rope_table(rope, 8, 3, 3);
  rope.scaling.attention_factor = 1.5;
  const std::vector<float> scaled = rope_table(rope, 8, 3, 3);
  ASSERT_EQ(scaled.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled[i], plain[i] * 1.5f);
}

TEST(Rope, KeysOfAConfigurationGoBeforeOtherSpellingsOfAFile) {
  const Json newer = {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}};
  const Json older = {{"rope_theta", 1e6}, {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}};
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const auto merged = [](Json file, const Json& given) {
    file.update(given);
    prefer_given_rope(given, file);
    return file;
  };
  EXPECT_EQ(merged(newer, {{"rope_scaling", yarn}}),
            (Json{{"rope_theta", 1e6}, {"rope_scaling", yarn}}));
  EXPECT_EQ(merged(newer, {{"rope_theta", 5}}).at("rope_parameters").at("rope_theta"), 5);
  EXPECT_EQ(merged(older, {{"rope_parameters", yarn}}),
            (Json{{"rope_theta", 1e6}, {"rope_parameters", yarn}}));
  EXPECT_EQ(merged(older, Json::object()), older);
  EXPECT_EQ(merged(newer, Json::object()), newer);
}

TEST(Rope, LongropeChoosesByTheLengthAndSaysSo) {
  RopeConfig rope;
  rope.scaling = {.kind = RopeScalingKind::kLongrope,
                  .factor = 2,
                  .original_max_position_embeddings = 64,
                  .short_factor = {1, 1},
                  .long_factor = {2, 2}};
  EXPECT_EQ(rope_inverse_frequencies(rope, 4, 64)[0], 1.0f);
  EXPECT_EQ(rope_inverse_frequencies(rope, 4, 65)[0], 0.5f);
  EXPECT_EQ(rope_changes_beyond(rope), 64);
  EXPECT_NE(rope_choice(rope, 64).find("short_factor"), std::string::npos);
  EXPECT_NE(rope_choice(rope, 65).find("long_factor"), std::string::npos);
  EXPECT_EQ(rope_choice(RopeConfig(), 65), "");
  EXPECT_EQ(rope_changes_beyond(RopeConfig()), 0);
}

}  // namespace
}  // namespace skein
