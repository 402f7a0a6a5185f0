#include "skein/checkpoint/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/numbers/hash.h"
#include "skein/checkpoint/format/safetensors_writer.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"
#include "tests/safetensors_file.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::HasSubstr;

std::string file_with(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header +
         std::string(data_bytes, 'x');
}

std::string parse_error(const std::string& file) {
  return error_of([&] { parse_safetensors_header(std::as_bytes(std::span(file)), "t"); });
}

TEST(Safetensors, WritesWhatItReads) {
  const TempFolder folder;
  const std::vector<SafetensorsTensor> tensors = {{"b", DType::kBF16, {3}},
                                                  {"naïve \"name\"\n", DType::kF32, {2, 2}},
                                                  {"scalar", DType::kI32, {}},
                                                  {"none", DType::kF32, {0, 4}},
                                                  {"d", DType::kF64, {1}}};
  const SafetensorsLayout layout = plan_safetensors(tensors, {{"format", "pt"}});
  std::vector<std::string> contents;
  {
    const FileOps ops;
    SafetensorsWriter writer(folder / "x.safetensors", layout, ops);
    for (const size_t index : layout.order) {
      contents.push_back(std::string(layout.bytes[index], static_cast<char>('a' + index)));
      EXPECT_EQ(writer.write(std::as_bytes(std::span(contents.back()))),
                xxh3_128_hex(std::as_bytes(std::span(contents.back()))));
    }
    writer.finish();
  }
  const test::SafetensorsFile file(folder / "x.safetensors");
  EXPECT_EQ(file.file_bytes(), layout.file_bytes);
  EXPECT_EQ(file.data_begin() % 8, 0);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsEntry* entry = file.find(tensors[i].name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(from_safetensors_dtype(entry->dtype), tensors[i].dtype);
    EXPECT_EQ(entry->shape, tensors[i].shape);
    EXPECT_EQ(entry->begin, layout.begin[i]);
    EXPECT_EQ(entry->begin % size_of(tensors[i].dtype), 0);
    for (const std::byte byte : file.bytes(*entry)) EXPECT_EQ(byte, std::byte('a' + i));
  }
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST(Safetensors, WriterKeepsItsPromises) {
  const TempFolder folder;
  const FileOps ops;
  const SafetensorsLayout layout = plan_safetensors(
      std::vector<SafetensorsTensor>{{"a", DType::kF32, {2}}, {"b", DType::kF32, {2}}});
  SafetensorsWriter writer(folder / "x.safetensors", layout, ops);
  const std::vector<std::byte> eight(8);
  EXPECT_THROW(writer.write(std::span(eight).first(4)), Error);
  writer.write(eight);
  EXPECT_THROW(writer.finish(), Error);
  writer.write(eight);
  EXPECT_THROW(writer.write(eight), Error);
  writer.finish();
  EXPECT_THROW(plan_safetensors(std::vector<SafetensorsTensor>{{"a"}, {"a"}}), Error);
  EXPECT_THROW(plan_safetensors(std::vector<SafetensorsTensor>{{"__metadata__"}}), Error);
  EXPECT_THROW(plan_safetensors(std::vector<SafetensorsTensor>{{"\xff"}}), Error);
  EXPECT_THROW(plan_safetensors(std::vector<SafetensorsTensor>{
                   {"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}),
               Error);
}

// The Python package wrote testdata/golden.safetensors (scripts/goldens/safetensors_golden.py).
TEST(Safetensors, ReadsWhatPythonWrote) {
  const test::SafetensorsFile file(fs::path(__FILE__).parent_path() /
                                   "testdata/golden.safetensors");
  EXPECT_EQ(file.entries().size(), 8u);
  EXPECT_EQ(file.metadata().at("note"), "a \"quoted\" naïve text");
  EXPECT_EQ(file.find("empty")->shape, (Shape{0, 4}));
  EXPECT_EQ(file.find("scalar")->shape, Shape());
  EXPECT_EQ(file.find("count.i64")->dtype, "I64");
  EXPECT_EQ(file.find("mask.bool")->num_bytes(), 3);
  float ramp[6];
  std::memcpy(ramp, file.bytes(*file.find("ramp.f32")).data(), sizeof ramp);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(ramp[i], static_cast<float>(i) * 0.5f - 1);
}

TEST(Safetensors, AcceptsUnusualButValidHeaders) {
  EXPECT_EQ(parse_error(file_with("{}", 0)), "");
  EXPECT_EQ(parse_error(file_with("{}      ", 0)), "");
  EXPECT_EQ(parse_error(file_with(R"({"__metadata__":{}})", 0)), "");
  EXPECT_EQ(parse_error(file_with(R"({"a":{"shape":[],"data_offsets":[0,1],"dtype":"U8"}})", 1)),
            "");
  EXPECT_EQ(parse_error(file_with(R"({"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[1,3]},
                                     "a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
                                  3)),
            "");
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto one = [](std::string dtype, std::string shape, std::string offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  struct Case {
    std::string header;
    size_t data_bytes;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"", 8, "does not start with '{'"},
      {" {}", 0, "does not start with '{'"},
      {"[]", 0, "does not start with '{'"},
      {"{", 0, "not valid JSON"},
      {"{} {}", 0, "not valid JSON"},
      {"{\"\xff\":{}}", 0, "not valid JSON"},
      {R"({"a":null})", 0, "null is not expected"},
      {R"({"a":1})", 0, "a number is not expected"},
      {R"({"a":{}})", 0, "expected all of dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "expected all of"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "key \"x\""},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1, "occurs twice"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
       R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0, "tensor \"a\" occurs twice"},
      {R"({"__metadata__":{"x":1}})", 0, "a number is not expected"},
      {R"({"__metadata__":{"x":"1","x":"2"}})", 0, "occurs twice"},
      {R"({"__metadata__":{"x":{"y":"z"}}})", 0, "an object is not expected"},
      {one("F33", "[1]", "[0,4]"), 4, "not a dtype that is known"},
      {one("f32", "[1]", "[0,4]"), 4, "not a dtype that is known"},
      {one("F32", "[-1]", "[0,4]"), 4, "no negative number"},
      {one("F32", "[1.0]", "[0,4]"), 4, "expected an integer below 2^63"},
      {one("F32", "[1e3]", "[0,4000]"), 4000, "expected an integer below 2^63"},
      {one("F32", "[18446744073709551615]", "[0,4]"), 4, "expected an integer below 2^63"},
      {one("F32", "[99999999999999999999999]", "[0,4]"), 4, "expected an integer below 2^63"},
      {one("F32", "[4294967296,4294967296]", "[0,0]"), 0, "too large to be real"},
      {one("F32", "[4611686018427387905]", "[0,4]"), 4, "too large to be real"},
      {one("U8", "[4611686018427387904,4]", "[0,0]"), 0, "too large to be real"},
      {one("F32", "[[1]]", "[0,4]"), 4, "an array is not expected"},
      {one("F32", "{}", "[0,4]"), 4, "an object is not expected"},
      {one("F32", "\"1\"", "[0,4]"), 4, "a string is not expected"},
      {one("F32", "[1]", "[0]"), 4, "expected two numbers"},
      {one("F32", "[1]", "[0,4,4]"), 4, "more than the 2 numbers"},
      {one("F32", "[1]", "[4,0]"), 4, "takes 4 bytes"},
      {one("F32", "[1]", "[0,8]"), 8, "takes 4 bytes"},
      {one("F32", "[2]", "[9223372036854775807,9223372036854775807]"), 8, "takes 8 bytes"},
      {one("F32", "[1]", "[0,4]"), 3, "truncated"},
      {one("F32", "[1]", "[0,4]"), 5, "not covered"},
      {one("F32", "[1]", "[4,8]"), 8, "no holes"},
      {"{}", 1, "not covered"},
      {one(
           "U8",
           "[1" +
               [] {
                 std::string ones;
                 for (int i = 0; i < 40; ++i) ones += ",1";
                 return ones;
               }() +
               "]",
           "[0,1]"),
       1, "more than the 32 numbers"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "no overlaps"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "no holes"},
      {std::string(100000, '{'), 0, "not valid JSON"},
      {R"({"a":)" + std::string(100000, '['), 0, "an array is not expected"},
  };
  for (const Case& item : cases) {
    EXPECT_THAT(parse_error(file_with(item.header, item.data_bytes)), HasSubstr(item.expected))
        << item.header.substr(0, 200);
  }
  EXPECT_THAT(parse_error(file_with(std::string("{}\0", 3), 0)), HasSubstr("not valid JSON"));
}

TEST(Safetensors, RefusesHostileLengths) {
  EXPECT_THAT(parse_error(""), HasSubstr("too few"));
  EXPECT_THAT(parse_error("1234567"), HasSubstr("too few"));
  EXPECT_THAT(parse_error(std::string(8, '\0')), HasSubstr("does not start with"));
  EXPECT_THAT(parse_error(std::string(16, '\xff')), HasSubstr("announced"));
  std::string file = file_with("{}", 0);
  file[0] = 3;
  EXPECT_THAT(parse_error(file), HasSubstr("announced, but the file has 10 bytes"));
  const uint64_t large = 100'000'001;
  std::memcpy(file.data(), &large, 8);
  EXPECT_THAT(parse_error(file), HasSubstr("expected at most 100000000"));
}

}  // namespace
}  // namespace skein
