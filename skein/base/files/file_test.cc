#include "skein/base/files/file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

fs::path fresh_folder(const char* name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string why_not(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(File, ReplacesAtomically) {
  const fs::path path = fresh_folder("skein_file_replace") / "a";
  write_file_atomic(path, "one");
  write_file_atomic(path, "two");
  EXPECT_EQ(read_file(path), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST(File, ReplacingLeavesTheFilesOfOthersAlone) {
  const fs::path folder = fresh_folder("skein_file_others");
  std::ofstream(folder / "a.partial") << "somebody's";
  write_file_atomic(folder / "a", "mine");
  EXPECT_EQ(read_file(folder / "a.partial"), "somebody's");
  fs::create_directories(folder / "taken/inside");
  EXPECT_THROW(write_file_atomic(folder / "taken", "mine"), Error);  // a folder cannot be replaced
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 3);
}

TEST(File, ErrorsNameThePath) {
  const fs::path folder = fresh_folder("skein_file_errors");
  EXPECT_EQ(why_not([&] { read_file(folder / "none"); }),
            "cannot open " + (folder / "none").string() + ": No such file or directory (2)");
  EXPECT_NE(why_not([&] { read_file(folder); }), "");
  write_file_atomic(folder / "big", std::string(100, 'x'));
  EXPECT_EQ(why_not([&] { read_file(folder / "big", 10); }),
            (folder / "big").string() + " has 100 bytes: expected at most 10");
}

TEST(File, MapsWhatIsThere) {
  const fs::path folder = fresh_folder("skein_file_map");
  write_file_atomic(folder / "text", "hello");
  write_file_atomic(folder / "empty", "");
  MappedFile file(folder / "text");
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(Json, ErrorsNameTheSource) {
  EXPECT_EQ(parse_json("{\"a\": [1, 2]}", "x").at("a").size(), 2u);
  EXPECT_NE(
      why_not([] { parse_json("{\"a\": }", "c.json"); }).find("c.json: not valid JSON: at line 1"),
      std::string::npos);
  EXPECT_NE(why_not([] { parse_json(std::string(1000, '['), "deep"); }), "");
  EXPECT_NE(why_not([] { parse_json(std::string_view("1\0x", 3), "nul"); }), "");
}

TEST(Json, FloatsReadBackToTheSameBits) {
  for (const float value : {0.1f, 1e-30f, 16777217.0f, 3.4028235e38f, -0.0f}) {
    EXPECT_EQ(parse_json(json_float(value), "f").get<float>(), value);
  }
  EXPECT_EQ(json_float(std::nanf("")), "null");
}

TEST(Hash, IsThatOfXxh128sum) {
  // `printf abc | xxh128sum`
  EXPECT_EQ(xxh3_128_hex(std::as_bytes(std::span("abc", 3))), "06b05ab6733a618578af5f94892f3950");
  Xxh3Stream stream;
  stream.update(std::as_bytes(std::span("a", 1)));
  stream.update(std::as_bytes(std::span("bc", 2)));
  EXPECT_EQ(stream.hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Units, AreForPeople) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1'500'000'000), "1.50 GB");
  EXPECT_EQ(format_count(12345), "12.3 k");
  EXPECT_EQ(format_duration(3.21), "3.2 s");
  EXPECT_EQ(format_duration(245), "4 min 05 s");
  EXPECT_EQ(format_duration(7999), "2 h 13 min");
}

}  // namespace
}  // namespace skein
