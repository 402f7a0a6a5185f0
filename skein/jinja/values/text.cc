#include "skein/jinja/values/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "skein/base/text/utf8.h"

namespace skein::jinja {
namespace {

size_t size_at(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Characters whose other case is several characters (SpecialCasing.txt, without conditions).
struct SpecialCase {
  char32_t code;
  const char* upper;
  const char* title;
};
constexpr SpecialCase kSpecialCases[] = {
#include "skein/jinja/values/special_cases.inc"
};

const SpecialCase* special_case(char32_t code) {
  const auto* found =
      std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), code,
                       [](const SpecialCase& row, char32_t wanted) { return row.code < wanted; });
  return found != std::end(kSpecialCases) && found->code == code ? found : nullptr;
}

bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) ||
         utf8proc_category(static_cast<int32_t>(code)) == UTF8PROC_CATEGORY_LT;
}

bool is_ignored_by_case(char32_t code) {
  switch (utf8proc_category(static_cast<int32_t>(code))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr char32_t kOthers[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                  0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                  0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  return std::find(std::begin(kOthers), std::end(kOthers), code) != std::end(kOthers);
}

// A capital sigma at the end of a word is ς in lower case.
bool is_final_sigma(std::string_view text, size_t at) {
  bool before = false;
  for (size_t end = at; end > 0;) {
    const size_t begin = utf8::character_start(text, end - 1);
    const char32_t code = code_of(text.substr(begin, end - begin));
    end = begin;
    if (is_ignored_by_case(code)) continue;
    before = is_cased(code);
    break;
  }
  if (!before) return false;
  for (const std::string_view character : Characters(text.substr(at + 2))) {
    const char32_t code = code_of(character);
    if (!is_ignored_by_case(code)) return !is_cased(code);
  }
  return true;
}

void append_upper(std::string& text, char32_t code) {
  if (const SpecialCase* special = special_case(code)) {
    text += special->upper;
  } else {
    append_code(text, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(code))));
  }
}

void append_title(std::string& text, char32_t code) {
  if (const SpecialCase* special = special_case(code)) {
    text += special->title;
  } else {
    append_code(text, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(code))));
  }
}

// `at`: where the character stands in `whole`.
void append_lower(std::string& text, char32_t code, std::string_view whole, size_t at) {
  if (code == 0x130) {
    text += "i\u0307";
  } else if (code == 0x3a3) {
    append_code(text, is_final_sigma(whole, at) ? 0x3c2 : 0x3c3);
  } else {
    append_code(text, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(code))));
  }
}

bool ends_line(char32_t code) {
  return (code >= 0xa && code <= 0xd) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

size_t Characters::Iterator::size() const {
  return std::min<size_t>(size_at(*at), static_cast<size_t>(end - at));
}

int64_t count_characters(std::string_view text) {
  return static_cast<int64_t>(utf8::num_characters(text));
}

size_t offset_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += size_at(text[at]);
  return std::min(at, text.size());
}

char32_t code_of(std::string_view character) { return utf8::first_character(character).code; }

void append_code(std::string& text, char32_t code) { utf8::append(text, code); }

bool is_space(char32_t code) {
  return (code >= 0x9 && code <= 0xd) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  switch (utf8proc_category(static_cast<int32_t>(code))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_alphabetic(char32_t code) {
  const auto category = utf8proc_category(static_cast<int32_t>(code));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
  return utf8proc_category(static_cast<int32_t>(code)) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t code) {
  return is_decimal(code) || code == 0xb2 || code == 0xb3 || code == 0xb9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468);
}

bool is_upper(char32_t code) { return utf8proc_isupper(static_cast<int32_t>(code)) != 0; }
bool is_lower(char32_t code) { return utf8proc_islower(static_cast<int32_t>(code)) != 0; }

std::string upper(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  for (const std::string_view character : Characters(text)) {
    append_upper(made, code_of(character));
  }
  return made;
}

std::string lower(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  for (const std::string_view character : Characters(text)) {
    append_lower(made, code_of(character), text,
                 static_cast<size_t>(character.data() - text.data()));
  }
  return made;
}

std::string capitalize(std::string_view text) {
  std::string made;
  bool first = true;
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    if (first) {
      append_title(made, code);
    } else {
      append_lower(made, code, text, static_cast<size_t>(character.data() - text.data()));
    }
    first = false;
  }
  return made;
}

std::string title(std::string_view text) {
  std::string made;
  bool inside = false;
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    if (inside) {
      append_lower(made, code, text, static_cast<size_t>(character.data() - text.data()));
    } else {
      append_title(made, code);
    }
    inside = is_cased(code);
  }
  return made;
}

std::string swap_case(std::string_view text) {
  std::string made;
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    if (is_upper(code)) {
      append_lower(made, code, text, static_cast<size_t>(character.data() - text.data()));
    } else if (is_lower(code)) {
      append_upper(made, code);
    } else {
      made += character;
    }
  }
  return made;
}

std::string_view strip(std::string_view text, Side side, const std::string_view* characters) {
  const auto goes = [&](std::string_view character) {
    return characters == nullptr ? is_space(code_of(character))
                                 : characters->find(character) != std::string_view::npos;
  };
  if (side != Side::kRight) {
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t size = size_at(text[begin]);
      if (!goes(text.substr(begin, size))) break;
      begin += size;
    }
    text.remove_prefix(begin);
  }
  if (side != Side::kLeft) {
    while (!text.empty()) {
      const size_t begin = utf8::character_start(text, text.size() - 1);
      if (!goes(text.substr(begin))) break;
      text.remove_suffix(text.size() - begin);
    }
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = size_at(text[at]);
    if (!ends_line(code_of(text.substr(at, size)))) {
      at += size;
      continue;
    }
    const size_t end = text.compare(at, 2, "\r\n") == 0 ? at + 2 : at + size;
    lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
    begin = at = end;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace skein::jinja
