#include "skein/prepare/read/bytes/utf8_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/prepare/read/bytes/foreign_files.h"
#include "skein/prepare/read/bytes/utf8_simd.h"

namespace skein {
namespace {

// The bytes that may follow a first byte: how many, and the range of the first of them.
struct Continuation {
  size_t count = 0;
  uint8_t low = 0x80, high = 0xbf;
};

Continuation continuation_of(uint8_t first) {
  if (first >= 0xc2 && first <= 0xdf) return {1};
  if (first == 0xe0) return {2, 0xa0, 0xbf};
  if (first == 0xed) return {2, 0x80, 0x9f};  // no surrogates
  if (first >= 0xe1 && first <= 0xef) return {2};
  if (first == 0xf0) return {3, 0x90, 0xbf};
  if (first == 0xf4) return {3, 0x80, 0x8f};
  if (first >= 0xf1 && first <= 0xf3) return {3};
  return {};
}

// The number of bytes of the character that `text` begins with, or of the beginning of one that is
// not finished.
size_t subpart_bytes(std::string_view text, bool& is_whole) {
  const auto first = static_cast<uint8_t>(text[0]);
  Continuation next = continuation_of(first);
  is_whole = first < 0x80 || next.count > 0;
  size_t size = 1;
  for (; size <= next.count; ++size, next.low = 0x80, next.high = 0xbf) {
    const uint8_t byte = size < text.size() ? static_cast<uint8_t>(text[size]) : 0;
    if (byte < next.low || byte > next.high) {
      is_whole = false;
      break;
    }
  }
  return size;
}

}  // namespace

bool is_utf8(std::string_view text) { return is_utf8_simd(text); }

void refuse_binary(std::string_view bytes, const std::string& where, ErrorCode code) {
  const ForeignKind* kind = binary_kind(bytes);
  const size_t null = bytes.find('\0');
  if (kind == nullptr && null == bytes.npos) return;
  fail(code, "{}: {}, not text: expected text, or JSON, CSV, Parquet or Arrow that holds some",
       where,
       kind != nullptr ? kind->what : fmt::format("binary data (a null byte at byte {})", null));
}

void check_utf8(std::string_view text, const std::string& where, ErrorCode code) {
  if (is_utf8(text)) return;
  refuse_binary(text, where, code);
  // Finds the bad byte, the end of the longest valid prefix, by bisection over the beginnings of
  // characters.
  size_t good = 0, bad = text.size();
  while (true) {
    size_t middle = good + (bad - good) / 2;
    while (middle > good && utf8::is_continuation(text[middle])) --middle;
    if (middle == good) break;
    (is_utf8(text.substr(0, middle)) ? good : bad) = middle;
  }
  fail(code,
       "{}: not UTF-8 near byte {}: expected UTF-8 text (--invalid-utf8 replace or skip continues)",
       where, good);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    bool is_whole = false;
    const size_t size = subpart_bytes(text, is_whole);
    repaired += is_whole ? text.substr(0, size) : "\xef\xbf\xbd";
    text.remove_prefix(size);
  }
  return repaired;
}

bool accept_utf8(std::string_view& text, std::string& repaired, const Utf8Policy& policy,
                 const std::function<std::string()>& where) {
  if (is_utf8(text)) return true;
  if (policy.invalid == InvalidUtf8::kFail) check_utf8(text, where());
  if (policy.invalid == InvalidUtf8::kFailAlways) {
    refuse_binary(text, where(), ErrorCode::kInvalid);
    check_utf8(text, where(), ErrorCode::kCorrupt);
  }
  if (policy.on_invalid) policy.on_invalid();
  if (policy.invalid == InvalidUtf8::kSkip) return false;
  repaired = replace_invalid_utf8(text);
  text = repaired;
  return true;
}

}  // namespace skein
