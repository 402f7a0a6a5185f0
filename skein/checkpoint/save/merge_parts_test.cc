// What the parts of a save must have in common, to be one checkpoint.
#include "skein/checkpoint/save/merge_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

// A part that names one tensor and has lanes [first, first + 1).
Manifest part_of(int rank, std::vector<Shard> shards, std::optional<int64_t> first_lane) {
  Manifest part;
  part.state.step = 3;
  part.state.first_lane = first_lane;
  part.state.lanes = Json{{"seed", 1}, {"lanes", {{rank, 0, 0}}}};
  const std::string checksum(32, 'a');
  for (Shard& shard : shards) {
    shard.file = fmt::format("weights-{:05d}-00000.safetensors", rank);
    shard.begin = 100;
    shard.end = 100 + shard.slice.shape.num_elements() * 4;
    shard.xxh3_128 = checksum;
    part.files.push_back({shard.file, shard.end, 100, checksum});
  }
  part.tensors = {{"w", DType::kF32, {4, 2}, std::move(shards)}};
  return part;
}

TEST(MergeParts, JoinsShardsAndLanes) {
  const Shard upper{.slice = {{0, 0}, {2, 2}}}, lower{.slice = {{2, 0}, {2, 2}}};
  const Manifest merged =
      merge_parts({part_of(0, {upper}, 1), part_of(1, {lower}, 0), part_of(2, {}, std::nullopt)});
  EXPECT_EQ(merged.state.lanes, (Json{{"seed", 1}, {"lanes", {{1, 0, 0}, {0, 0, 0}}}}));
  EXPECT_EQ(merged.state.first_lane, 0);
  ASSERT_EQ(merged.tensors.size(), 1u);
  EXPECT_EQ(merged.tensors[0].shards.size(), 2u);
}

TEST(MergeParts, RefusesWhatDoesNotFit) {
  const Shard upper{.slice = {{0, 0}, {2, 2}}}, lower{.slice = {{2, 0}, {2, 2}}};
  const auto merging = [&](auto change, std::optional<int64_t> first_lane = 1) {
    std::vector<Manifest> parts = {part_of(0, {upper}, 0), part_of(1, {lower}, first_lane)};
    change(parts[1]);
    return error_of([&] { merge_parts(parts); });
  };
  EXPECT_EQ(merging([](Manifest&) {}), "");
  EXPECT_THAT(merging([](Manifest& part) { part.state.step = 4; }), HasSubstr("rank 1 saved step"));
  EXPECT_THAT(merging([](Manifest& part) {
                part.tensors[0].shape = {4, 3};
              }),
              HasSubstr("tensor \"w\" as f32 [4, 3]"));
  EXPECT_THAT(merging([](Manifest& part) { part.tensors[0].shards.clear(), part.files.clear(); }),
              HasSubstr("cover 4 of 8 elements"));
  EXPECT_THAT(merging([](Manifest& part) { part.tensors[0].shards[0].slice.offset[0] = 1; }),
              HasSubstr("overlap"));
  EXPECT_THAT(merging([](Manifest& part) { part.tensors[0].name = "v"; }), HasSubstr("cover 4"));
  EXPECT_THAT(merging([](Manifest& part) { part.state.lanes["seed"] = 2; }),
              HasSubstr("rank 1 saved lanes of"));
  EXPECT_THAT(merging([](Manifest& part) { part.state.lanes = Json(); }),
              HasSubstr("without an array"));
  EXPECT_THAT(merging([](Manifest&) {}, 0), HasSubstr("lanes from 0 on, expected 1"));
  EXPECT_THAT(merging([](Manifest&) {}, 2), HasSubstr("lanes from 2 on, expected 1"));
}

}  // namespace
}  // namespace skein
