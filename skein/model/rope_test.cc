#include "skein/model/rope.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

#include "skein/base/file.h"
#include "skein/model/llama/llama.h"
#include "tests/places.h"

namespace skein {
namespace {

int64_t ulps_between(float a, float b) {
  return std::abs(int64_t{std::bit_cast<int32_t>(a)} - int64_t{std::bit_cast<int32_t>(b)});
}

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

}  // namespace
}  // namespace skein
