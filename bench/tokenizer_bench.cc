// How fast a tokenizer encodes on one core, and what it makes of given documents.
//
//   tokenizer_bench TOKENIZER TEXT [--rounds N]      JSON: MiB/s of each round, tokens
//   tokenizer_bench TOKENIZER --judge IN OUT         ids of documents, for someone else to compare
//
// IN holds documents, OUT their ids: each a uint32 of how many bytes or ids, and then these. With
// --judge every document of UTF-8 is also decoded again and must come back as it was, but those
// with U+2581, with which SentencePiece spells a space.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/bpe/utf8.h"
#include "skein/data/tokenizer.h"

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

// Returns how many documents did not come back.
int judge(const Tokenizer& tokenizer, const std::string& in, const std::string& out) {
  const std::string input = read_all(in);
  std::ofstream output(out, std::ios::binary);
  std::vector<int32_t> ids;
  int changed = 0;
  for (size_t at = 0; at + 4 <= input.size();) {
    uint32_t size = 0;
    std::memcpy(&size, &input[at], 4);
    const std::string_view document(&input[at + 4], size);
    at += 4 + size;
    ids.clear();
    tokenizer.encode(document, ids);
    const auto count = static_cast<uint32_t>(ids.size());
    output.write(reinterpret_cast<const char*>(&count), 4);
    output.write(reinterpret_cast<const char*>(ids.data()), 4 * static_cast<int64_t>(count));
    if (utf8::valid_prefix(document) == size && document.find("\u2581") == std::string_view::npos &&
        tokenizer.decode(ids) != document) {
      ++changed;
    }
  }
  return changed;
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
  if (!files.empty()) {
    fmt::print("{{\"changed\": {}}}\n", judge(*tokenizer, files[0], files[1]));
  }
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
