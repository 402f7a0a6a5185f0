#include "skein/prepare/dedup/hashing/words.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

namespace skein {
namespace {

constexpr uint32_t kNumCodes = 0x110000;

struct CodeRange {
  char32_t first, last;
};
// Blocks of scripts that put no spaces between words.
constexpr std::array<CodeRange, 12> kUnspaced{{{0x0e00, 0x0eff},      // Thai, Lao
                                               {0x0f00, 0x109f},      // Tibetan, Myanmar
                                               {0x1780, 0x17ff},      // Khmer
                                               {0x2e80, 0x2fdf},      // radicals
                                               {0x3005, 0x3007},      // 々, 〆, 〇
                                               {0x3040, 0x30ff},      // Hiragana, Katakana
                                               {0x31f0, 0x31ff},      // Katakana extensions
                                               {0x3400, 0x4dbf},      // Han, extension A
                                               {0x4e00, 0x9fff},      // Han
                                               {0xa9e0, 0xa9ff},      // Myanmar extensions
                                               {0xf900, 0xfaff},      // Han, compatibility
                                               {0x20000, 0x3ffff}}};  // Han, other planes

constexpr std::u32string_view kDecimalSeparators = U".,\u060c\u066b\u2396\u2397\u2398";

bool is_unspaced(char32_t code) {
  return std::any_of(kUnspaced.begin(), kUnspaced.end(),
                     [&](CodeRange range) { return range.first <= code && code <= range.last; });
}

bool is_dropped(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF;
}

// The lower case of `code`, without marks where exactly one character is left without them.
char32_t simplified(char32_t code) {
  const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(code));
  std::array<utf8proc_int32_t, 16> parts{};
  int boundary_class = 0;
  const utf8proc_ssize_t num_parts = utf8proc_decompose_char(lower, parts.data(), parts.size(),
                                                             UTF8PROC_DECOMPOSE, &boundary_class);
  const auto end = parts.begin() + std::clamp<utf8proc_ssize_t>(num_parts, 0, parts.size());
  const auto kept = std::remove_if(parts.begin(), end, [](utf8proc_int32_t part) {
    return is_dropped(utf8proc_category(part));
  });
  return static_cast<char32_t>(kept - parts.begin() == 1 ? parts[0] : lower);
}

}  // namespace

const uint32_t* WordHasher::table() {
  const auto entry = [](char32_t code) -> uint32_t {
    const auto of_kind = [](Kind kind, char32_t value) { return uint32_t{kind} << 24 | value; };
    if (kDecimalSeparators.find(code) != std::u32string_view::npos) {
      return of_kind(kDecimalSeparator, code);
    }
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    if (category == UTF8PROC_CATEGORY_ND) return of_kind(kDigit, U'0');
    if (is_dropped(category)) return of_kind(kInvisible, code);
    const bool is_letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
    const bool is_number = category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
    if (!is_letter && !is_number && category != UTF8PROC_CATEGORY_MC) {
      return of_kind(kSeparator, code);
    }
    return of_kind(is_unspaced(code) ? kWord : kLetter, simplified(code));
  };
  static const std::vector<uint32_t> table = [&] {
    std::vector<uint32_t> entries(kNumCodes);
    for (char32_t code = 0; code < kNumCodes; ++code) entries[code] = entry(code);
    return entries;
  }();
  return table.data();
}

const char* WordHasher::skip_digits(const char* at, const char* end) const {
  while (at < end) {
    const HashedCharacter character = read(at, end);
    if (character.kind != kDigit) break;
    at += character.size;
  }
  return at;
}

const char* WordHasher::skip_number(const char* at, const char* end) const {
  at = skip_digits(at, end);
  if (at == end) return at;
  const HashedCharacter point = read(at, end);
  if (point.kind != kDecimalSeparator) return at;
  const char* const fraction = at + point.size;
  const char* const behind = skip_digits(fraction, end);
  return behind > fraction ? behind : at;
}

}  // namespace skein
