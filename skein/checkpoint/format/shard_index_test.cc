#include "skein/checkpoint/format/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "skein/checkpoint/save/join_parts.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/checkpoint/made_up_ranks.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A matrix in two boxes, the second of them in ranges, and a scalar.
Manifest sample() {
  const std::string checksum(32, 'a');
  const std::string first = "weights-00000-00000.safetensors",
                    second = "weights-00001-00000.safetensors";
  Manifest manifest;
  manifest.files = {{first, 100 + 56, 100, checksum}, {second, 64 + 44, 64, checksum}};
  manifest.tensors = {
      {"w",
       DType::kF32,
       {4, 6},
       {{second, {{0, 3}, {4, 3}}, 64, 84, checksum, FlatRange{7, 5}},
        {first, {{0, 0}, {4, 3}}, 100, 148, checksum},
        {second, {{0, 3}, {4, 3}}, 84, 108, checksum, FlatRange{0, 6}},
        {first, {{0, 3}, {4, 3}}, 148, 152, checksum, FlatRange{6, 1}}}},
      {"count", DType::kI32, {}, {{first, {{}, {}}, 152, 156, std::string(32, '5')}}}};
  return manifest;
}

TEST(ShardIndex, HoldsWhatItWasMadeOf) {
  const std::string bytes = shard_index_of(sample(), "a note");
  const ShardIndex index(bytes_of(bytes), "x");
  EXPECT_EQ(index.note(), "a note");
  ASSERT_EQ(index.num_files(), 2);
  EXPECT_EQ(index.file(1), sample().files[1]);
  ASSERT_EQ(index.num_tensors(), 2);
  const IndexTensor w = index.tensor(0), count = index.tensor(1);
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.shape, (Shape{4, 6}));
  ASSERT_EQ(w.boxes.size(), 2u);
  EXPECT_EQ(w.boxes[0], (Box{{0, 3}, {4, 3}}));
  ASSERT_EQ(w.num_shards, 4);
  // By box and first element, whatever the order in the manifest was.
  EXPECT_EQ(index.shard(w, 0).range, (FlatRange{0, 6}));
  EXPECT_EQ(index.shard(w, 1).range, (FlatRange{6, 1}));
  EXPECT_EQ(index.shard(w, 1).file, 0u);
  EXPECT_EQ(index.shard(w, 2).range, (FlatRange{7, 5}));
  EXPECT_EQ(index.shard(w, 3).box, 1u);
  EXPECT_EQ(index.end_of(w, index.shard(w, 3)), 148);
  EXPECT_EQ(describe(w, index.shard(w, 1)), "elements 6 to 7 of [0:4, 3:6]");
  EXPECT_EQ(describe(w, index.shard(w, 3)), "[0:4, 0:3]");
  EXPECT_EQ(count.dtype, DType::kI32);
  EXPECT_EQ(hex_of_digest(index.shard(count, 0).xxh3_128), std::string(32, '5'));
  check_whole(index);
}

TEST(ShardIndex, DetectsEveryChangedOrMissingByte) {
  const std::string bytes = shard_index_of(sample(), "n");
  const auto error = [](const std::string& changed) {
    return error_of([&] { check_whole(ShardIndex(bytes_of(changed), "x")); });
  };
  EXPECT_EQ(error(bytes), "");
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    EXPECT_NE(error(changed), "") << i;
    EXPECT_NE(error(bytes.substr(0, i)), "") << i;
  }
  EXPECT_NE(error(bytes + "x"), "");
}

TEST(ShardIndex, RefusesWhatIsNotAWholeCheckpoint) {
  const auto error = [](auto change) {
    Manifest manifest = sample();
    change(manifest);
    const std::string bytes = shard_index_of(manifest, "");
    return error_of([&] { check_whole(ShardIndex(bytes_of(bytes), "x")); });
  };
  using Shards = std::vector<Shard>;
  const auto shards = [&](auto change) {
    return error([&](Manifest& manifest) { change(manifest.tensors[0].shards); });
  };
  EXPECT_EQ(error([](Manifest&) {}), "");
  EXPECT_THAT(shards([](Shards& all) { all[3].range = FlatRange{5, 1}; }), HasSubstr("expected"));
  EXPECT_THAT(shards([](Shards& all) { all.pop_back(); }), HasSubstr("begins at element 7"));
  EXPECT_THAT(shards([](Shards& all) { all.erase(all.begin()); }), HasSubstr("cover 7 of the 12"));
  EXPECT_THAT(shards([](Shards& all) { all.erase(all.begin() + 1); }), HasSubstr("12 of 24"));
  EXPECT_THAT(shards([](Shards& all) { all[1].slice.offset[1] = 1; }), HasSubstr("overlap"));
  EXPECT_THAT(shards([](Shards& all) { all[0].range = FlatRange{7, 6}; }), HasSubstr("not lie in"));
  EXPECT_THAT(shards([](Shards& all) {
                all[0].range = FlatRange{-1, 5};
              }),
              HasSubstr("not lie in"));
  EXPECT_THAT(shards([](Shards& all) { all[0].begin = 63; }), HasSubstr("not lie in its file"));
  EXPECT_THAT(shards([](Shards& all) { all[0].begin = 89; }), HasSubstr("not lie in its file"));
  EXPECT_THAT(shards([](Shards& all) { all[0].begin = 80; }), HasSubstr("every byte of"));
  EXPECT_THAT(shards([](Shards& all) { all[1].slice.shape.set_dim(0, 5); }),
              HasSubstr("cannot be"));
  EXPECT_THAT(error([](Manifest& m) { m.tensors[1].name = "w"; }), HasSubstr("listed twice"));
  EXPECT_THAT(error([](Manifest& m) {
                m.tensors[0].shape = {INT64_MAX, 6};
              }),
              HasSubstr("cannot be"));
  EXPECT_THAT(error([](Manifest& m) { m.tensors[0].name = std::string(20'000, 'w'); }),
              HasSubstr("a name has 20000 bytes"));
  EXPECT_THAT(error([](Manifest& m) { m.files[0].file_bytes = 99; }), HasSubstr("file 0"));
  EXPECT_THAT(error([](Manifest& m) {
                m.files[0].name = "../x.safetensors";
                m.tensors[0].shards[1].file = m.tensors[0].shards[3].file = m.files[0].name;
                m.tensors[1].shards[0].file = m.files[0].name;
              }),
              HasSubstr("file 0"));
}

// Ranges of boxes at random: the shards near a box include all that overlap it.
TEST(ShardIndex, WhatIsNearABoxIsAllThatMeetsIt) {
  std::mt19937 random(3);
  const std::string checksum(32, 'a'), file = "weights-00000-00000.safetensors";
  for (int trial = 0; trial < 200; ++trial) {
    const Shape shape = {static_cast<int64_t>(1 + random() % 9),
                         static_cast<int64_t>(2 + random() % 9)};
    const auto cut = static_cast<int64_t>(1 + random() % (shape.dim(1) - 1));
    Manifest manifest;
    manifest.tensors = {{"w", DType::kF32, shape, {}}};
    int64_t at = 8;
    for (const Box& box :
         {Box{{0, 0}, {shape.dim(0), cut}}, Box{{0, cut}, {shape.dim(0), shape.dim(1) - cut}}}) {
      const int64_t elements = box.shape.num_elements();
      for (int64_t begin = 0, count = 0; begin < elements; begin += count, at += count * 4) {
        count = std::min<int64_t>(elements - begin, 1 + random() % 7);
        manifest.tensors[0].shards.push_back(
            {file, box, at, at + count * 4, checksum, FlatRange{begin, count}});
      }
    }
    manifest.files = {{file, at, 8, checksum}};
    const std::string bytes = shard_index_of(manifest, "");
    const ShardIndex index(bytes_of(bytes), "x");
    const IndexTensor tensor = index.tensor(0);
    Box wanted = {{static_cast<int64_t>(random() % shape.dim(0)),
                   static_cast<int64_t>(random() % shape.dim(1))},
                  {1, 1}};
    for (int dim = 0; dim < 2; ++dim) {
      wanted.shape.set_dim(
          dim, static_cast<int64_t>(1 + random() % (shape.dim(dim) - wanted.offset[dim])));
    }
    std::vector<std::pair<uint32_t, int64_t>> near, meeting;
    index.for_each_near(tensor, wanted, [&](const IndexShard& shard) {
      near.emplace_back(shard.box, shard.range.begin);
    });
    for (int64_t i = 0; i < tensor.num_shards; ++i) {
      const IndexShard shard = index.shard(tensor, i);
      for (const Box& part : boxes_of_range(tensor.boxes[shard.box], shard.range)) {
        if (!intersect(part, wanted)) continue;
        meeting.emplace_back(shard.box, shard.range.begin);
        break;
      }
    }
    EXPECT_TRUE(std::is_sorted(near.begin(), near.end()));
    EXPECT_EQ(std::adjacent_find(near.begin(), near.end()), near.end());
    EXPECT_TRUE(std::includes(near.begin(), near.end(), meeting.begin(), meeting.end())) << trial;
  }
}

// 4,096 ranks of a model of two layers: what one rank opens does not grow with their number. The
// same shards as JSON text would take 600 MB.
TEST(ShardIndex, OneOfThousandsOfRanksOpensLittle) {
  const test::TempFolder folder;
  const test::MadeUpRanks ranks(Mesh::standard(1, 512, 1, 8),
                                {.layers = 2, .hidden = 4096, .intermediate = 11008, .kv = 1024});
  std::vector<SavePart> parts;
  for (int64_t rank = 0; rank < ranks.num_ranks(); ++rank) parts.emplace_back(ranks.stored(rank));
  EXPECT_LT(parts[5].index().head_bytes(), 40'000);
  const Manifest manifest = join_parts(std::move(parts), folder / kIndexName, FileOps());
  const std::string text = manifest_text(manifest);
  std::ofstream(folder / "manifest.json", std::ios::binary) << text;
  EXPECT_LT(text.size(), 100'000u);
  EXPECT_GT(fs::file_size(folder / kIndexName), 12'000'000u);
  for (const int64_t rank : {0, 1, 2049, 4095}) {
    test::MadeUpRanks::Found found;
    const int64_t bytes = test::peak_bytes([&] {
      const CheckpointReader reader(folder.path());
      found = ranks.find_what_a_rank_reads(reader, rank);
    });
    EXPECT_GE(found.near, found.needed);
    EXPECT_LT(found.near, found.needed + found.needed / 4);
    EXPECT_LT(bytes, 64'000'000);  // bench/start_bench.cc measures the time
  }
}

}  // namespace
}  // namespace skein
