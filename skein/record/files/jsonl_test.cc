#include "skein/record/files/jsonl.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/error.h"

namespace skein {
namespace {

fs::path fresh_file(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / name;
  fs::remove(path);
  return path;
}

TEST(Jsonl, AppendsAcrossWriters) {
  const fs::path path = fresh_file("append.jsonl");
  JsonlWriter(path).append(R"({"step": 1})");
  JsonlWriter(path).append(R"({"step": 2})");
  EXPECT_EQ(read_file(path), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST(Jsonl, ClosesATornLineFirst) {
  const fs::path path = fresh_file("torn.jsonl");
  std::ofstream(path) << "{\"step\": 1}\n{\"step\": 2, \"lo";
  JsonlWriter writer(path);
  writer.append(R"({"step": 2})");
  writer.append(R"({"step": 3})");
  EXPECT_EQ(read_file(path), "{\"step\": 1}\n{\"step\": 2, \"lo\n{\"step\": 2}\n{\"step\": 3}\n");
}

TEST(Jsonl, ReadsObjectsAndCountsTheRest) {
  const fs::path path = fresh_file("garbage.jsonl");
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  const std::string huge = "{\"a\": \"" + std::string(2 << 20, 'x') + "\"}";
  std::ofstream(path) << "{\"a\": 1}\n\n  \n7\nnot json\n"
                      << deep << "\n"
                      << huge << "\n\xff\xfe\n{\"a\": 2}\r\n[1]\n{\"a\": 3";
  std::vector<int> seen;
  EXPECT_EQ(for_each_json_line(path, [&](const Json& json) { seen.push_back(json.at("a")); }), 7);
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST(Jsonl, ReadsTheEndAlone) {
  const fs::path path = fresh_file("end.jsonl");
  std::ofstream(path) << "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}";
  std::vector<int> seen;
  for_each_json_line(
      path, [&](const Json& json) { seen.push_back(json.at("a")); }, 17);
  EXPECT_EQ(seen, (std::vector<int>{2, 3}));
}

TEST(Jsonl, AMissingFileHasNoLines) {
  EXPECT_EQ(for_each_json_line("/nowhere/metrics.jsonl", [](const Json&) { FAIL(); }), 0);
}

TEST(Jsonl, WritersShareAFile) {
  const fs::path path = fresh_file("shared.jsonl");
  const auto write = [&](int writer) {
    JsonlWriter log(path);
    for (int line = 0; line < 500; ++line) {
      log.append("{\"writer\": " + std::to_string(writer) + ", \"pad\": \"" +
                 std::string(200, 'x') + "\"}");
    }
  };
  std::thread first(write, 0), second(write, 1);
  first.join();
  second.join();
  int num_lines[2] = {0, 0};
  EXPECT_EQ(
      for_each_json_line(path, [&](const Json& json) { ++num_lines[int(json.at("writer"))]; }), 0);
  EXPECT_EQ(num_lines[0], 500);
  EXPECT_EQ(num_lines[1], 500);
}

TEST(Jsonl, SaysWhichFileFails) {
  try {
    JsonlWriter writer("/nowhere/metrics.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("/nowhere/metrics.jsonl"), std::string::npos);
  }
}

TEST(JsonlTail, ReadsOnWhereItEnded) {
  const fs::path path = fs::path(testing::TempDir()) / "tail.jsonl";
  fs::remove(path);
  JsonlTail tail(path);
  std::vector<int> found;
  const auto read = [&] {
    found.clear();
    tail.read([&](const Json& json) { found.push_back(json.at("a").get<int>()); });
    return found;
  };
  EXPECT_TRUE(read().empty());
  const auto append = [&](const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  };
  append("{\"a\": 1}\nno json\n{\"a\": 2}\n{\"a\":");
  EXPECT_EQ(read(), (std::vector<int>{1, 2}));
  EXPECT_TRUE(read().empty());
  append(" 3}\n");
  EXPECT_EQ(read(), (std::vector<int>{3}));
  append(std::string(5 << 20, 'x').append("\n{\"a\": 4}\n"));  // longer than any line may be
  EXPECT_EQ(read(), (std::vector<int>{4}));
  EXPECT_EQ(tail.offset(), static_cast<int64_t>(fs::file_size(path)));
  fs::remove(path);
  append("{\"a\": 5}\n");  // another file
  EXPECT_EQ(read(), (std::vector<int>{5}));
}

}  // namespace
}  // namespace skein
