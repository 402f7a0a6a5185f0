// How fast a tokenizer encodes on one core, and what it makes of given documents.
//
//   tokenizer_bench TOKENIZER TEXT [--rounds N]      JSON: MiB/s of each round, tokens
//   tokenizer_bench TOKENIZER --judge IN OUT         ids of documents, for someone else to compare
//
// IN holds documents: each a uint32 of how many bytes, and then these. OUT has of each the ids, and
// the bytes that these decode to, likewise; 2^32 - 1 and no bytes where they are the document's.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kDocumentBytes = size_t{256} << 10;  // what a lane encodes at once

std::string read_all(const std::string& path) { return read_file(path, int64_t{1} << 40); }

void measure(const Tokenizer& tokenizer, std::string_view text, int rounds) {
  std::vector<std::string_view> documents;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.size(), begin + kDocumentBytes);
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) ++end;
    documents.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  size_t tokens = 0;
  std::string speeds;
  std::vector<int32_t> ids;
  for (int round = 0; round < rounds; ++round) {
    tokens = 0;
    const auto start = Clock::now();
    for (const std::string_view document : documents) {
      ids.clear();
      tokenizer.encode(document, ids);
      tokens += ids.size();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    speeds += fmt::format("{}{:.1f}", round > 0 ? ", " : "",
                          static_cast<double>(text.size()) / seconds / (1 << 20));
  }
  fmt::print("{{\"bytes\": {}, \"tokens\": {}, \"mib_per_s\": [{}]}}\n", text.size(), tokens,
             speeds);
}

constexpr uint32_t kSame = UINT32_MAX;

void judge(const Tokenizer& tokenizer, const std::string& in, const std::string& out) {
  const std::string input = read_all(in);
  std::ofstream output(out, std::ios::binary);
  const auto write = [&](const void* data, size_t num_bytes) {
    output.write(static_cast<const char*>(data), static_cast<std::streamsize>(num_bytes));
  };
  const auto write_size = [&](size_t size) {
    const auto number = static_cast<uint32_t>(size);
    write(&number, sizeof(number));
  };
  std::vector<int32_t> ids;
  for (size_t at = 0; at + 4 <= input.size();) {
    uint32_t size = 0;
    std::memcpy(&size, &input[at], 4);
    const std::string_view document(&input[at + 4], size);
    at += 4 + size;
    ids.clear();
    tokenizer.encode(document, ids);
    write_size(ids.size());
    write(ids.data(), ids.size() * sizeof(int32_t));
    const std::string decoded = tokenizer.decode(ids);
    if (decoded == document) {
      write_size(kSame);
    } else {
      write_size(decoded.size());
      write(decoded.data(), decoded.size());
    }
  }
  if (!output.flush()) fail(ErrorCode::kIo, "cannot write {}", out);
}

int run(int argc, char** argv) {
  CLI::App app("How fast a tokenizer encodes on one core");
  std::string folder, text;
  int rounds = 3;
  app.add_option("tokenizer", folder)->required();
  app.add_option("text", text, "a file of UTF-8 to measure with");
  app.add_option("--rounds", rounds);
  std::vector<std::string> files;
  app.add_option("--judge", files, "documents, and where their ids go")->expected(2);
  CLI11_PARSE(app, argc, argv);
  const auto tokenizer = Tokenizer::load(folder);
  if (!text.empty()) measure(*tokenizer, read_all(text), rounds);
  if (!files.empty()) judge(*tokenizer, files[0], files[1]);
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  try {
    return skein::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
    return 1;
  }
}
