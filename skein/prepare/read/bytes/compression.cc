#include "skein/prepare/read/bytes/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "skein/prepare/read/bytes/decompressor.h"

namespace skein {
namespace {

// Text may begin with "BZh": the mark of a first block, or of the end, comes behind.
bool begins_bzip2(std::string_view head) {
  if (!head.starts_with("BZh") || head.size() < 10 || head[3] < '1' || head[3] > '9') return false;
  return head.substr(4, 6) == "1AY&SY" || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90";
}

bool begins_xz(std::string_view head) {
  return head.starts_with(std::string_view("\xfd\x37zXZ\0", 6)) || head.starts_with("LZIP\x01");
}

constexpr Compression kCompressions[] = {
    {"gzip", "gzip -d", " .gz .gzip ", " .tgz .taz ",
     [](std::string_view head) { return head.starts_with("\x1f\x8b"); }, gunzip},
    {"zstd", "zstd -d", " .zst .zstd ", " .tzst .tzstd ",
     [](std::string_view head) { return head.starts_with("\x28\xb5\x2f\xfd"); }, unzstd},
    {"bzip2", "bzip2 -d", " .bz2 .bz ", " .tbz2 .tbz .tb2 ", begins_bzip2, unbzip2},
    {"xz", "xz -d", " .xz .lzma .lz ", " .txz .tlz ", begins_xz, unxz},
    {"lz4", "lz4 -d", " .lz4 ", " .tlz4 ",
     [](std::string_view head) { return head.starts_with("\x04\x22\x4d\x18"); }, unlz4},
    {"brotli", "brotli -d", " .br ", " ", [](std::string_view) { return false; }, unbrotli},
};

std::string ending_of(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending.empty() ? "" : fmt::format(" {} ", ending);
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

const Compression* compression_of(std::string_view head) {
  const auto* found = std::find_if(std::begin(kCompressions), std::end(kCompressions),
                                   [&](const Compression& each) { return each.begins(head); });
  return found == std::end(kCompressions) ? nullptr : found;
}

const Compression* compression_named(const fs::path& path) {
  const std::string ending = ending_of(path);
  if (ending.empty()) return nullptr;
  const auto* found = std::find_if(std::begin(kCompressions), std::end(kCompressions),
                                   [&](const Compression& each) {
                                     return each.endings.find(ending) != std::string_view::npos ||
                                            each.tar_endings.find(ending) != std::string_view::npos;
                                   });
  return found == std::end(kCompressions) ? nullptr : found;
}

std::string name_inside(const fs::path& path) {
  const Compression* compression = compression_named(path);
  if (compression == nullptr) return lower_case(path.filename().string());
  const bool is_tar = compression->tar_endings.find(ending_of(path)) != std::string_view::npos;
  return lower_case(path.stem().string()) + (is_tar ? ".tar" : "");
}

}  // namespace skein
