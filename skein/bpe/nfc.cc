#include "skein/bpe/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "skein/base/error.h"
#include "skein/bpe/utf8.h"

namespace skein::bpe {
namespace {

constexpr char32_t kFirst = 0x300;  // below, every character stays as it is beside any other
constexpr std::string_view kNoFinal = "\u11a7";

struct Range {
  char32_t first, last;
};
// What Unicode 10 to 14 added that form C moves or joins.
constexpr Range kAddedSince9[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
    {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
    {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x10d24, 0x10d27},
    {0x10eab, 0x10eac}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070},
    {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930},
    {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943},
    {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99},
    {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x16ff0, 0x16ff1},
    {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}};

std::vector<bool> added_since_9() {
  std::vector<bool> flags(0x110000);
  for (const auto [first, last] : kAddedSince9) {
    for (char32_t code = first; code <= last; ++code) flags[code] = true;
  }
  return flags;
}

std::vector<char32_t> normalized(const std::vector<utf8proc_int32_t>& codes, int options) {
  std::string text;
  for (const utf8proc_int32_t code : codes) utf8::append(text, static_cast<char32_t>(code));
  std::vector<utf8proc_int32_t> buffer(64);
  const auto size = utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<ptrdiff_t>(text.size()), buffer.data(),
                                       static_cast<ptrdiff_t>(buffer.size()),
                                       static_cast<utf8proc_option_t>(options));
  return {buffer.begin(), buffer.begin() + size};
}

// Characters that form C may change, move, or join to the one before.
const std::vector<bool>& unstable() {
  static const std::vector<bool> table = [] {
    std::vector<bool> flags(0x110000);
    for (utf8proc_int32_t code = kFirst; code < 0x110000; ++code) {
      const utf8proc_property_t* const property = utf8proc_get_property(code);
      if (property->combining_class != 0) flags[static_cast<size_t>(code)] = true;
      if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) continue;
      const auto parts = normalized({code}, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
      utf8proc_int32_t again[64];
      std::copy(parts.begin(), parts.end(), again);
      const auto size = utf8proc_normalize_utf32(
          again, static_cast<ptrdiff_t>(parts.size()),
          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (size != 1 || again[0] != code) flags[static_cast<size_t>(code)] = true;
      for (size_t i = 1; i < parts.size(); ++i) flags[parts[i]] = true;
    }
    for (char32_t jamo = 0x1161; jamo <= 0x11c2; ++jamo) flags[jamo] = true;  // vowels and finals
    return flags;
  }();
  return table;
}

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

// Canonical order. utf8proc's own takes time with the square of the number of marks, of which a
// text may have a hundred thousand behind one letter.
void sort_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto is_mark = [](utf8proc_int32_t code) { return combining_class(code) != 0; };
  const auto before = [](utf8proc_int32_t a, utf8proc_int32_t b) {
    return combining_class(a) < combining_class(b);
  };
  for (auto run = codes.begin(); run != codes.end();) {
    const auto first = std::find_if(run, codes.end(), is_mark);
    run = std::find_if_not(first, codes.end(), is_mark);
    if (!std::is_sorted(first, run, before)) std::stable_sort(first, run, before);
  }
}

void append_composed(std::string_view text, std::string& out) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    at += character.size;
    std::array<utf8proc_int32_t, 32> parts{};
    int no_boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code),
                                               parts.data(), parts.size(), kOptions, &no_boundary);
    if (count < 0) fail(ErrorCode::kInternal, "NFC: {}", utf8proc_errmsg(count));
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  sort_marks(codes);
  const auto count =
      utf8proc_normalize_utf32(codes.data(), static_cast<ptrdiff_t>(codes.size()), kOptions);
  if (count < 0) fail(ErrorCode::kInternal, "NFC: {}", utf8proc_errmsg(count));
  for (ptrdiff_t i = 0; i < count; ++i) {
    utf8::append(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  }
}

// libutf8proc 2.8 takes U+11A7 for a final consonant, which it is not.
void append_parts(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(kNoFinal, 1));
    append_composed(part, out);
    text.remove_prefix(part.size());
  }
}

void append_as_of_9(std::string_view text, std::string& out) {
  static const std::vector<bool> is_added = added_since_9();
  const char* const end = text.data() + text.size();
  const char* begin = text.data();  // of what is not in `out` yet
  for (const char* at = begin; at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    const char* const next = at + character.size;
    if (is_added[character.code]) {
      append_parts({begin, static_cast<size_t>(at - begin)}, out);
      out.append(at, next);
      begin = next;
    }
    at = next;
  }
  append_parts({begin, static_cast<size_t>(end - begin)}, out);
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& composed, NfcOf version) {
  const char* const end = text.data() + text.size();
  bool is_stable = true;
  for (const char* at = text.data(); at < end && is_stable;) {
    if (static_cast<uint8_t>(*at) < 0xcc) {  // up to U+02FF
      at += static_cast<uint8_t>(*at) < 0x80 ? 1 : 2;
      continue;
    }
    const utf8::Character character = utf8::decode(at, end);
    is_stable = !unstable()[character.code];
    at += character.size;
  }
  if (is_stable) return text;
  composed.clear();
  if (version == NfcOf::kUnicode9) {
    append_as_of_9(text, composed);
  } else {
    append_parts(text, composed);
  }
  return composed;
}

}  // namespace skein::bpe
