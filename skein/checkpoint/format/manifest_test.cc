#include "skein/checkpoint/format/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/numbers/hash.h"
#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

Manifest sample() {
  const std::string checksum(32, 'a');
  Manifest manifest;
  manifest.state = {.step = 120,
                    .schedule_step = 120,
                    .seed = UINT64_MAX,
                    .tokens_seen = int64_t{1} << 50,
                    .reduction_width = 4,
                    .lanes = Json{{"a", {1, 2, "naïve"}}},
                    .configuration = Json{{"x", 0.1}, {"y", nullptr}},
                    .skein_version = "0.1.0"};
  manifest.files = {{"weights-00000-00000.safetensors", 100 + 48, 100, checksum},
                    {"weights-00001-00000.safetensors", 64 + 36, 64, checksum}};
  manifest.tensors = {{"w",
                       DType::kF32,
                       {4, 4},
                       {{"weights-00000-00000.safetensors", {{0, 0}, {3, 4}}, 100, 148, checksum},
                        {"weights-00001-00000.safetensors", {{3, 0}, {1, 4}}, 64, 80, checksum}}},
                      {"b",
                       DType::kBF16,
                       {10},
                       {{"weights-00001-00000.safetensors", {{0}, {10}}, 80, 100, checksum}}}};
  return manifest;
}

// The text with a fitting checksum, so that the checks after the checksum are tested.
std::string sealed(const Json& json) {
  Json rest = json;
  rest.erase("manifest_xxh3_128");
  const std::string body = rest.dump().substr(1);
  return "{\"manifest_xxh3_128\": \"" + xxh3_128_hex(std::as_bytes(std::span(body))) + "\",\n" +
         body;
}

TEST(Manifest, HoldsWhatWasSkipped) {
  Manifest manifest = sample();
  EXPECT_EQ(manifest_text(manifest).find("skipped_batches"), std::string::npos);
  manifest.state.skipped_batches = Json::parse("[[17, 17], [40, 44]]");
  manifest.state.roll_backs = 2;
  EXPECT_EQ(parse_manifest(manifest_text(manifest), "m"), manifest);
  Json json = Json::parse(manifest_text(manifest));
  json["roll_backs"] = 0;
  EXPECT_THAT(error_of([&] { parse_manifest(sealed(json), "m"); }), HasSubstr("roll_backs"));
}

TEST(Manifest, ReadsBackWhatItWrote) {
  EXPECT_EQ(parse_manifest(manifest_text(sample()), "m"), sample());
  EXPECT_EQ(parse_manifest(sealed(Json::parse(manifest_text(sample()))), "m"), sample());
  Manifest empty;
  EXPECT_EQ(parse_manifest(manifest_text(empty), "m"), empty);
}

Manifest indexed() {
  Manifest manifest = sample();
  manifest.index = ManifestIndex{kIndexName, 4096, 1024, std::string(32, 'b')};
  manifest.files.clear();
  for (ManifestTensor& tensor : manifest.tensors) tensor.shards.clear();
  return manifest;
}

TEST(Manifest, OfAnIndexListsTensorsAndNoShards) {
  const std::string text = manifest_text(indexed());
  EXPECT_EQ(parse_manifest(text, "m"), indexed());
  const Json good = Json::parse(text);
  EXPECT_EQ(good.at("format_version"), 2);
  EXPECT_FALSE(good.contains("files"));
  EXPECT_EQ(good.at("tensors")[0], (Json{{"name", "w"}, {"dtype", "f32"}, {"shape", {4, 4}}}));
  const auto refused = [&](const char* pointer, const Json& value) {
    Json changed = good;
    changed[Json::json_pointer(pointer)] = value;
    return error_of([&] { parse_manifest(sealed(changed), "m"); });
  };
  EXPECT_THAT(refused("/index/file", "../index.bin"), HasSubstr("expected \"index.bin\""));
  EXPECT_THAT(refused("/index/file_bytes", 0), HasSubstr("at least 1"));
  EXPECT_THAT(refused("/index/head_xxh3_128", "b"), HasSubstr("32 lower-case"));
  EXPECT_THAT(refused("/index/more", 1), HasSubstr("unknown keys"));
  EXPECT_THAT(refused("/index", 1), HasSubstr("expected an object"));
  EXPECT_THAT(refused("/tensors/0/shards", Json::array()), HasSubstr("unknown keys"));
  EXPECT_THAT(refused("/files", Json::array()), HasSubstr("unknown keys"));
  EXPECT_THAT(refused("/tensors/1/name", "w"), HasSubstr("listed twice"));
  EXPECT_THAT(refused("/format_version", 1), HasSubstr("\"files\" is missing"));
}

TEST(Manifest, IsNotWrittenWithBrokenText) {
  Manifest manifest = sample();
  manifest.state.skein_version = "\xff";
  EXPECT_THAT(error_of([&] { manifest_text(manifest); }), HasSubstr("skein_version"));
}

TEST(Manifest, DetectsEveryChangedOrMissingByte) {
  const std::string text = manifest_text(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_NE(error_of([&] { parse_manifest(changed, "m"); }), "") << i;
    EXPECT_NE(error_of([&] { parse_manifest(text.substr(0, i), "m"); }), "") << i;
  }
  EXPECT_NE(error_of([&] { parse_manifest(text + " ", "m"); }), "");
}

TEST(Manifest, RefusesWhatDoesNotAddUp) {
  struct Case {
    std::string pointer;
    Json value;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"/format", "other", "expected \"skein-checkpoint\""},
      {"/format_version", 3, "newer"},
      {"/format_version", 0, "at least 1"},
      {"/step", -1, "step is -1, expected an integer of at least 0"},
      {"/step", "3", "step is string"},
      {"/step", 1.5, "step is 1.5"},
      {"/step", UINT64_MAX, "expected an integer"},
      {"/seed", -1, "seed is -1"},
      {"/reduction_width", 0, "at least 1"},
      {"/extra", 1, "unknown keys"},
      {"/files", Json::object(), "expected an array"},
      {"/files/0/name", "../x.safetensors", "in this folder"},
      {"/files/0/name", "/etc/x.safetensors", "in this folder"},
      {"/files/0/name", "a/b.safetensors", "in this folder"},
      {"/files/0/name", ".x.safetensors", "in this folder"},
      {"/files/0/name", "x.bin", "in this folder"},
      {"/files/0/name", "weights-00001-00000.safetensors", "listed twice"},
      {"/files/0/name", "other-00000-00000.safetensors", "is not listed"},
      {"/files/0/file_bytes", 149, "end at byte 148"},
      {"/files/0/header_bytes", 99, "starts at byte 100, expected 99"},
      {"/files/0/header_xxh3_128", "xyz", "32 lower-case"},
      {"/tensors/0", 3, "expected an object"},
      {"/tensors/0/dtype", "F32", "expected f32"},
      {"/tensors/0/shape", Json{4, -4}, "at least 1"},
      {"/tensors/0/shape", Json{INT64_MAX, INT64_MAX}, "a size that can be real"},
      {"/tensors/0/shape", Json{5, 4}, "cover 16 of 20"},
      {"/tensors/0/shape", Json(std::vector<int>(17, 1)), "at most 16"},
      {"/tensors/1/name", "w", "listed twice"},
      {"/tensors/0/shards", Json::array(), "cover 0 of 16"},
      {"/tensors/0/shards/0/offset", Json{1, 0}, "overlap"},
      {"/tensors/0/shards/0/offset", Json{2, 0}, "not a box inside"},
      {"/tensors/0/shards/0/offset", Json{0}, "not a box inside"},
      {"/tensors/0/shards/0/bytes", Json{100, 149}, "a range of 48 bytes"},
      {"/tensors/0/shards/0/bytes", Json{100}, "a range of 48 bytes"},
      {"/tensors/0/shards/0/bytes", Json{104, 152}, "expected 100"},
      {"/tensors/1/shards/0/bytes", Json{64, 84}, "expected"},
      {"/tensors/0/shards/0/xxh3_128", std::string(32, 'A'), "32 lower-case"},
  };
  const Json good = Json::parse(manifest_text(sample()));
  for (const Case& item : cases) {
    Json changed = good;
    changed[Json::json_pointer(item.pointer)] = item.value;
    EXPECT_THAT(error_of([&] { parse_manifest(sealed(changed), "m"); }), HasSubstr(item.expected))
        << item.pointer << " = " << item.value;
  }
}

TEST(Manifest, RefusesMissingKeys) {
  const Json good = Json::parse(manifest_text(sample()));
  for (const char* parent : {"", "/files/0", "/tensors/0", "/tensors/0/shards/1"}) {
    const Json object = good.at(Json::json_pointer(parent));
    for (const auto& [key, value] : object.items()) {
      if (key == "manifest_xxh3_128") continue;
      Json changed = good;
      changed.at(Json::json_pointer(parent)).erase(key);
      EXPECT_THAT(error_of([&] { parse_manifest(sealed(changed), "m"); }),
                  HasSubstr("\"" + key + "\" is missing"));
    }
  }
}

}  // namespace
}  // namespace skein
