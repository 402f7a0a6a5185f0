#include "skein/bpe/unicode/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "skein/base/error.h"
#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/bpe/unicode/properties.h"

namespace skein::bpe {
namespace {

constexpr char32_t kFirst = 0x300;  // below, every character stays as it is beside any other
constexpr std::string_view kNoFinal = "\u11a7";

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

// Characters that libutf8proc changes or joins, and Unicode 9 does not.
const std::vector<bool>& added_since_9() {
  static const std::vector<bool> table = [] {
    std::vector<bool> flags(0x110000);
    for (utf8proc_int32_t code = kFirst; code < 0x110000; ++code) {
      const utf8proc_property_t* const property = utf8proc_get_property(code);
      const bool has_parts = property->decomp_seqindex != UINT16_MAX;
      if (property->combining_class != 0 || has_parts) flags[static_cast<size_t>(code)] = true;
      if (!has_parts || property->decomp_type != 0) continue;
      for (const char32_t part : normalized({code}, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE)) {
        flags[part] = true;
      }
    }
    for (const auto& [first, last] : unicode_normal().ranges()) {
      std::fill(flags.begin() + first, flags.begin() + last + 1, false);
    }
    std::fill(flags.begin(), flags.begin() + kFirst, false);
    return flags;
  }();
  return table;
}

int options_of(NormalForm form) {
  switch (form) {
    case NormalForm::kC:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalForm::kD:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalForm::kKc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalForm::kKd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
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

void append_normal(std::string_view text, NormalForm form, std::string& out) {
  const auto options = static_cast<utf8proc_option_t>(options_of(form));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    at += character.size;
    std::array<utf8proc_int32_t, 32> parts{};
    int no_boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code),
                                               parts.data(), parts.size(), options, &no_boundary);
    if (count < 0) fail(ErrorCode::kInternal, "normalization: {}", utf8proc_errmsg(count));
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  sort_marks(codes);
  auto count = static_cast<ptrdiff_t>(codes.size());
  if ((options & UTF8PROC_COMPOSE) != 0) {
    count = utf8proc_normalize_utf32(codes.data(), count, options);
    if (count < 0) fail(ErrorCode::kInternal, "normalization: {}", utf8proc_errmsg(count));
  }
  for (ptrdiff_t i = 0; i < count; ++i) {
    utf8::append(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  }
}

// libutf8proc 2.8 takes U+11A7 for a final consonant, which it is not.
void append_parts(std::string_view text, NormalForm form, std::string& out) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(kNoFinal, 1));
    append_normal(part, form, out);
    text.remove_prefix(part.size());
  }
}

void append_as_of_9(std::string_view text, NormalForm form, std::string& out) {
  const std::vector<bool>& is_added = added_since_9();
  const char* const end = text.data() + text.size();
  const char* begin = text.data();  // of what is not in `out` yet
  for (const char* at = begin; at < end;) {
    const utf8::Character character = utf8::decode(at, end);
    const char* const next = at + character.size;
    if (is_added[character.code]) {
      append_parts({begin, static_cast<size_t>(at - begin)}, form, out);
      out.append(at, next);
      begin = next;
    }
    at = next;
  }
  append_parts({begin, static_cast<size_t>(end - begin)}, form, out);
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
    append_as_of_9(text, NormalForm::kC, composed);
  } else {
    append_parts(text, NormalForm::kC, composed);
  }
  return composed;
}

std::string_view to_normal_form(std::string_view text, NormalForm form, std::string& out) {
  if (form == NormalForm::kC) return to_nfc(text, out, NfcOf::kUnicode9);
  const bool is_ascii =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (is_ascii) return text;
  out.clear();
  append_as_of_9(text, form, out);
  return out;
}

}  // namespace skein::bpe
