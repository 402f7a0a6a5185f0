#include "skein/checkpoint/hugging_face/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "skein/base/text/json.h"
#include "skein/checkpoint/format/convert.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using test::names_in;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

ExportTensor tensor(std::string name, Shape shape, float first) {
  return {std::move(name), DType::kF32, std::move(shape), [first](std::span<std::byte> target) {
            for (size_t i = 0; i < target.size() / 4; ++i) {
              const float value = first + static_cast<float>(i);
              std::memcpy(target.data() + 4 * i, &value, 4);
            }
          }};
}

std::vector<float> read_floats(const HuggingFaceFolder& folder, std::string_view name) {
  std::vector<float> values(folder.find(name)->shape.num_elements());
  folder.read(name, DType::kF32, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(HuggingFace, WritesOneFileAndReadsItBack) {
  const TempFolder folder;
  std::ofstream(folder / "tokenizer.model") << "pieces";
  write_hugging_face(folder / "out/", {.tensors = {tensor("a", {2, 3}, 0), tensor("b", {2}, 10)},
                                       .texts = {{"config.json", "{}\n"}},
                                       .copies = {folder / "tokenizer.model"}});
  EXPECT_THAT(names_in(folder / "out"),
              ElementsAre("config.json", "model.safetensors", "tokenizer.model"));
  EXPECT_EQ(read_file(folder / "out/tokenizer.model"), "pieces");
  const HuggingFaceFolder read(folder / "out");
  EXPECT_THAT(read.tensor_names(), ElementsAre("a", "b"));
  EXPECT_THAT(read_floats(read, "a"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(read_floats(read, "b"), ElementsAre(10, 11));
  std::vector<bfloat16> box(2);
  read.read("a", {{0, 1}, {2, 1}}, DType::kBF16, std::as_writable_bytes(std::span(box)));
  EXPECT_EQ(static_cast<float>(box[1]), 4);
}

TEST(HuggingFace, SplitsFilesAndWritesTheIndex) {
  const TempFolder folder;
  write_hugging_face(folder / "out", {.tensors = {tensor("a", {4}, 0), tensor("b", {4}, 4),
                                                  tensor("c", {9}, 8), tensor("d", {1}, 17)},
                                      .max_shard_bytes = 32});
  EXPECT_THAT(names_in(folder / "out"),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const Json index = read_json(folder / "out/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], 18 * 4);
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00003.safetensors");
  const HuggingFaceFolder read(folder / "out");
  EXPECT_THAT(read_floats(read, "b"), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(read_floats(read, "d"), ElementsAre(17));
}

TEST(HuggingFace, RefusesAFolderThatIsInUseAndLeavesNothingBehind) {
  const TempFolder folder;
  fs::create_directory(folder / "empty");
  write_hugging_face(folder / "empty", {.tensors = {tensor("a", {1}, 0)}});
  EXPECT_THAT(error_of([&] { write_hugging_face(folder / "empty", {}); }),
              HasSubstr("exists and is not an empty folder"));
  EXPECT_THAT(error_of([&] {
                write_hugging_face(folder / "x", {.texts = {{"../config.json", ""}}});
              }),
              HasSubstr("not a plain file name"));
  const FileOps full([](std::string_view operation, const fs::path&) {
    if (operation == "sync") fail(ErrorCode::kNoSpace, "disk full");
  });
  EXPECT_THROW(write_hugging_face(folder / "x", {.tensors = {tensor("a", {1}, 0)}}, full), Error);
  EXPECT_THROW(
      write_hugging_face(folder / "x", {.tensors = {tensor("a", {1}, 0), tensor("a", {1}, 0)}}),
      Error);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("empty"));
}

TEST(HuggingFace, WhatAKilledExportLeftIsRemoved) {
  const TempFolder folder;
  const fs::path left = unique_partial(folder / "out"), other = unique_partial(folder / "other");
  for (const fs::path& partial : {left, other}) {
    fs::create_directory(partial);
    write_file_atomic(partial / "model.safetensors", "half");
  }
  write_hugging_face(folder / "out", {.tensors = {tensor("a", {4}, 0)}});
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other) && fs::exists(folder / "out" / "model.safetensors"));
}

TEST(HuggingFace, AnExportTouchesNobodysFolder) {
  const TempFolder folder;
  fs::create_directories(folder / "hf.partial/precious");
  write_hugging_face(folder / "hf", {.tensors = {tensor("a", {1}, 0)}});
  EXPECT_TRUE(fs::exists(folder / "hf.partial/precious"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("hf", "hf.partial"));
  const fs::path before = fs::current_path();
  fs::create_directory(folder / "empty");
  fs::current_path(folder / "empty");
  for (const char* name : {"", ".", "./", "..", "../."}) {
    EXPECT_THAT(error_of([&] { write_hugging_face(name, {.tensors = {tensor("a", {1}, 0)}}); }),
                HasSubstr("expected the name of a new folder"))
        << name;
  }
  fs::current_path(before);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("empty", "hf", "hf.partial"));
}

TEST(HuggingFace, ReadsEveryKindOfFloat) {
  const TempFolder folder;
  fs::copy(fs::path(__FILE__).parent_path().parent_path() / "format/testdata/golden.safetensors",
           folder / "model.safetensors");
  const HuggingFaceFolder read(folder.path());
  for (const char* name : {"ramp.f32", "ramp.bf16", "ramp.f16", "ramp.f64"}) {
    EXPECT_THAT(read_floats(read, name), ElementsAre(-1, -0.5, 0, 0.5, 1, 1.5)) << name;
    std::vector<bfloat16> narrow(6);
    read.read(name, DType::kBF16, std::as_writable_bytes(std::span(narrow)));
    EXPECT_EQ(static_cast<float>(narrow[5]), 1.5f) << name;
  }
  EXPECT_TRUE(read_floats(read, "empty").empty());
  EXPECT_THAT(read_floats(read, "scalar"), ElementsAre(2.5));
  std::vector<float> two(2);
  const auto target = std::as_writable_bytes(std::span(two));
  EXPECT_THAT(error_of([&] { read.read("count.i64", DType::kF32, target); }),
              HasSubstr("\"count.i64\" is I64: it cannot be read as f32"));
  EXPECT_THAT(error_of([&] { read.read("none", DType::kF32, target); }), HasSubstr("no tensor"));
  EXPECT_THAT(error_of([&] { read.read("scalar", DType::kF32, target); }), HasSubstr("8 bytes"));
}

TEST(HuggingFace, RefusesFoldersThatDoNotAddUp) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { HuggingFaceFolder(folder.path()); }),
              HasSubstr("is not a Hugging Face model folder"));
  const auto open_with = [&](const std::string& index) {
    std::ofstream(folder / "model.safetensors.index.json") << index;
    return error_of([&] { HuggingFaceFolder(folder.path()); });
  };
  EXPECT_THAT(open_with("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(open_with("[]"), HasSubstr("\"weight_map\""));
  EXPECT_THAT(open_with(R"({"weight_map": []})"), HasSubstr("\"weight_map\""));
  for (const char* file : {"../model.safetensors", "/x/model.safetensors", "a/b.safetensors", "x",
                           "", ".safetensors", "..\\\\x.safetensors", "a\\u0000.safetensors"}) {
    EXPECT_THAT(open_with(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", file)),
                HasSubstr("in the same folder"))
        << file;
  }
  EXPECT_THAT(open_with(R"({"weight_map": {"a": 1}})"), HasSubstr("is number"));
  EXPECT_THAT(open_with(R"({"weight_map": {"a": "x.safetensors"}})"),
              HasSubstr("1 of 1 files that it names is missing: x.safetensors"));
  fs::copy(fs::path(__FILE__).parent_path().parent_path() / "format/testdata/golden.safetensors",
           folder / "x.safetensors");
  EXPECT_THAT(open_with(R"({"weight_map": {"a": "x.safetensors"}})"), HasSubstr("not there"));
  EXPECT_EQ(open_with(R"({"weight_map": {"scalar": "x.safetensors"}})"), "");
}

TEST(Convert, HalfIsExact) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x83ff), -1023 * 0x1p-24f);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_EQ(half_to_float(0x7c00), INFINITY);
  EXPECT_TRUE(std::isnan(half_to_float(0x7e00)));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = (bits >> 10) & 31;
    if (exponent == 31) continue;
    const double magnitude = exponent == 0 ? std::ldexp(bits & 1023, -24)
                                           : std::ldexp(1024 + (bits & 1023), exponent - 25);
    ASSERT_EQ(half_to_float(bits), (bits & 0x8000) != 0 ? -magnitude : magnitude);
  }
}

}  // namespace
}  // namespace skein
