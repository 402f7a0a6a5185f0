#include "skein/checkpoint/find/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "skein/base/numbers/hash.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using test::SmallState;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A checkpoint of one f32 tensor with elements 0, 1, 2, ..., each box written by another rank.
void write_sharded(const fs::path& folder, const Shape& shape, const std::vector<Box>& boxes) {
  fs::create_directories(folder);
  std::vector<float> whole(shape.num_elements());
  std::iota(whole.begin(), whole.end(), 0.0f);
  Manifest manifest;
  manifest.state.step = 1;
  manifest.tensors = {{"w", DType::kF32, shape, {}}};
  for (size_t rank = 0; rank < boxes.size(); ++rank) {
    const std::string name = fmt::format("weights-{:05d}-00000.safetensors", rank);
    std::vector<float> part(boxes[rank].shape.num_elements());
    for_each_run(Box::whole(shape), boxes[rank], [&](int64_t from, int64_t to, int64_t count) {
      std::copy_n(whole.begin() + from, count, part.begin() + to);
    });
    const auto layout =
        plan_safetensors(std::vector<SafetensorsTensor>{{"w", DType::kF32, boxes[rank].shape}});
    const FileOps ops;
    SafetensorsWriter writer(folder / name, layout, ops);
    const std::string checksum = writer.write(std::as_bytes(std::span(part)));
    writer.finish();
    manifest.files.push_back({name, layout.file_bytes, static_cast<int64_t>(layout.header.size()),
                              xxh3_128_hex(std::as_bytes(std::span(layout.header)))});
    manifest.tensors[0].shards.push_back(
        {name, boxes[rank], layout.begin[0], layout.file_bytes, checksum});
  }
  overwrite(folder / "manifest.json", manifest_text(manifest));
}

// Every box of the given sizes reads back as if it were cut out of the whole tensor.
void expect_boxes(const CheckpointReader& reader, const Shape& shape) {
  for (int64_t row = 0; row < shape.dim(0); ++row) {
    for (int64_t col = 0; col < shape.dim(1); ++col) {
      for (int64_t rows = 1; rows <= shape.dim(0) - row; ++rows) {
        for (int64_t cols = 1; cols <= shape.dim(1) - col; ++cols) {
          std::vector<float> found(rows * cols, -1), expected;
          for (int64_t r = row; r < row + rows; ++r) {
            for (int64_t c = col; c < col + cols; ++c) {
              expected.push_back(static_cast<float>(r * shape.dim(1) + c));
            }
          }
          reader.read("w", {{row, col}, {rows, cols}}, DType::kF32,
                      std::as_writable_bytes(std::span(found)));
          ASSERT_EQ(found, expected) << row << " " << col << " " << rows << " " << cols;
        }
      }
    }
  }
}

TEST(CheckpointReader, ReadsAnyBoxWhateverLayoutSavedIt) {
  const Shape shape = {8, 6};
  const std::vector<std::vector<Box>> layouts = {
      {Box::whole(shape)},
      {{{0, 0}, {2, 6}}, {{2, 0}, {2, 6}}, {{4, 0}, {2, 6}}, {{6, 0}, {2, 6}}},
      {{{0, 0}, {8, 2}}, {{0, 2}, {8, 2}}, {{0, 4}, {8, 2}}},
      {{{0, 0}, {4, 3}}, {{0, 3}, {4, 3}}, {{4, 0}, {4, 1}}, {{4, 1}, {4, 5}}}};
  for (const auto& boxes : layouts) {
    const TempFolder folder;
    write_sharded(folder / "c", shape, boxes);
    const Result<VerifyReport> verified = verify_checkpoint(folder / "c");
    ASSERT_TRUE(verified.ok()) << verified.error().what();
    expect_boxes(CheckpointReader(folder / "c"), shape);
  }
}

TEST(CheckpointReader, ReadsOnlyTheFilesItNeeds) {
  const TempFolder folder;
  write_sharded(folder / "c", {4, 2}, {{{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}});
  fs::remove(folder / "c/weights-00001-00000.safetensors");
  const CheckpointReader reader(folder / "c");
  std::vector<float> found(4);
  const auto target = std::as_writable_bytes(std::span(found));
  reader.read("w", {{0, 0}, {2, 2}}, DType::kF32, target);
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(error_of([&] {
                reader.read("w", {{1, 0}, {2, 2}}, DType::kF32, target);
              }),
              HasSubstr("weights-00001-00000.safetensors"));
}

TEST(CheckpointReader, ConvertsAndRefuses) {
  const TempFolder folder;
  write_sharded(folder / "c", {2, 2}, {Box::whole({2, 2})});
  const CheckpointReader reader(folder / "c");
  std::vector<bfloat16> found(4);
  const auto target = std::as_writable_bytes(std::span(found));
  reader.read("w", Box::whole({2, 2}), DType::kBF16, target);
  EXPECT_EQ(static_cast<float>(found[3]), 3.0f);
  const auto reading = [&](std::string_view name, Box box, DType dtype) {
    return error_of([&] { reader.read(name, box, dtype, target); });
  };
  EXPECT_THAT(reading("v", Box::whole({2, 2}), DType::kF32), HasSubstr("no tensor \"v\""));
  EXPECT_THAT(reading("w", {{0, 1}, {2, 2}}, DType::kF32), HasSubstr("cannot read [0:2, 1:3]"));
  EXPECT_THAT(reading("w", Box::whole({4}), DType::kF32), HasSubstr("cannot read"));
  EXPECT_THAT(reading("w", Box::whole({2, 2}), DType::kI32), HasSubstr("as i32"));
  EXPECT_THAT(reading("w", Box::whole({2, 2}), DType::kF32), HasSubstr("8 bytes given"));
}

// Every flipped byte of every file, and every length that a file may be cut to, is detected.
void expect_every_change_is_found(const fs::path& path) {
  int64_t trials = 0;
  for (const std::string& name : test::names_in(path)) {
    const std::string good = read_file(path / name);
    for (size_t i = 0; i < good.size(); ++i, ++trials) {
      std::fstream file(path / name, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(i).put(static_cast<char>(good[i] ^ (1 << (i % 8)))).flush();
      EXPECT_FALSE(verify_checkpoint(path, 1).ok()) << name << " byte " << i;
      file.seekp(i).put(good[i]);
    }
    for (size_t i = good.size(); i-- > 0; ++trials) {
      fs::resize_file(path / name, i);
      EXPECT_FALSE(verify_checkpoint(path, 1).ok()) << name << " cut to " << i;
    }
    overwrite(path / name, good + "x");
    EXPECT_FALSE(verify_checkpoint(path, 1).ok()) << name << " with a byte more";
    overwrite(path / name, good);
  }
  EXPECT_GT(trials, 4000);
  EXPECT_TRUE(verify_checkpoint(path).ok());
}

TEST(CheckpointVerify, DetectsEveryFlippedByteAndEveryTruncation) {
  const TempFolder folder(TempFolder::Where::kMemory);
  SmallState state;
  CheckpointWriter writer(folder.path(), {.async = false}, state.specs());
  ASSERT_TRUE(state.save(writer, 3).ok());
  expect_every_change_is_found(folder / "step-00000003");
}

TEST(CheckpointVerify, DetectsEveryFlippedByteOfAnIndex) {
  const TempFolder folder(TempFolder::Where::kMemory);
  const test::RanksState state(Mesh::standard(1, 2, 1, 1), true);
  test::Ranks(state, folder.path()).expect_save(3);
  const fs::path path = folder / "step-00000003";
  for (const std::string& name : test::names_in(path)) {  // long, and covered by the other test
    if (name.ends_with(".safetensors") && name != "weights-00001-00000.safetensors") continue;
    SCOPED_TRACE(name);
    const std::string good = read_file(path / name);
    const size_t stride = name == kIndexName ? 1 : 31;
    for (size_t i = 0; i < good.size(); i += stride) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
      overwrite(path / name, changed);
      EXPECT_FALSE(verify_checkpoint(path, 1).ok()) << " byte " << i;
      overwrite(path / name, good.substr(0, i));
      EXPECT_FALSE(verify_checkpoint(path, 1).ok()) << " cut to " << i;
    }
    overwrite(path / name, good);
  }
  fs::remove(path / kIndexName);
  EXPECT_FALSE(verify_checkpoint(path, 1).ok());
}

TEST(CheckpointVerify, NamesWhatIsDamaged) {
  const TempFolder folder;
  SmallState state(100);
  CheckpointWriter writer(folder.path(), {}, state.specs());
  ASSERT_TRUE(state.save(writer, 3).ok());
  const fs::path path = folder / "step-00000003", file = path / "weights-00000-00000.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() - 100] ^= 1;
  overwrite(file, bytes);
  const Result<VerifyReport> verified = verify_checkpoint(path);
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(verified.error().what(), HasSubstr(file.string() + ": tensor \"embed.weight\""));
  // A shard that is read whole is checked as it is read.
  std::vector<float> target(600 * 5);
  EXPECT_THAT(error_of([&] {
                CheckpointReader(path).read("embed.weight", Box::whole({600, 5}), DType::kF32,
                                            std::as_writable_bytes(std::span(target)));
              }),
              HasSubstr("does not match its checksum"));
  fs::rename(path, folder / "step-00000004");
  EXPECT_FALSE(verify_checkpoint(folder / "step-00000004").ok());
  EXPECT_FALSE(verify_checkpoint(folder / "nothing").ok());
}

TEST(FindNewestGood, FallsBackAndReports) {
  const TempFolder folder;
  SmallState state;
  CheckpointWriter writer(folder.path(), {}, state.specs());
  for (int64_t step = 1; step <= 4; ++step) ASSERT_TRUE(state.save(writer, step).ok());
  std::vector<std::pair<int64_t, std::string>> damaged;
  const auto report = [&](const CheckpointInfo& checkpoint, const Error& error) {
    damaged.emplace_back(checkpoint.step, error.what());
  };
  EXPECT_EQ(find_newest_good(folder.path(), report)->step, 4);
  EXPECT_TRUE(damaged.empty());
  fs::remove(folder / "step-00000004/manifest.json");
  fs::resize_file(folder / "step-00000003/optimizer-00000-00000.safetensors", 100);
  EXPECT_EQ(find_newest_good(folder.path(), report)->step, 2);
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_THAT(damaged[0].second, HasSubstr("step-00000004/manifest.json"));
  EXPECT_THAT(damaged[1].second, HasSubstr("has 100 bytes, expected"));
  fs::remove_all(folder / "step-00000001");
  fs::remove_all(folder / "step-00000002");
  EXPECT_FALSE(find_newest_good(folder.path(), report).has_value());
  EXPECT_EQ(damaged.size(), 4u);
  EXPECT_FALSE(find_newest_good(folder / "missing", report).has_value());
}

}  // namespace
}  // namespace skein
