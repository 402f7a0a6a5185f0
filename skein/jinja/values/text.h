// Text of Python: UTF-8 whose characters are code points, with Python's whitespace and cases.
//
// Source   CPython's unicodeobject.c; tables of utf8proc. All text here is valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::jinja {

// The characters of a text, as views of their bytes: for (std::string_view c : Characters(text)).
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {}
  struct Iterator {
    const char* at;
    const char* end;
    std::string_view operator*() const { return {at, size()}; }
    Iterator& operator++() {
      at += size();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
    size_t size() const;
  };
  Iterator begin() const { return {text_.data(), text_.data() + text_.size()}; }
  Iterator end() const { return {text_.data() + text_.size(), text_.data() + text_.size()}; }

 private:
  std::string_view text_;
};

int64_t count_characters(std::string_view text);
// Where character `index` begins; `index` is at most the number of characters.
size_t offset_of(std::string_view text, int64_t index);
// The code point that `character` spells.
char32_t code_of(std::string_view character);
void append_code(std::string& text, char32_t code);

bool is_space(char32_t code);
bool is_printable(char32_t code);
bool is_alphabetic(char32_t code);
bool is_digit(char32_t code);  // str.isdigit
bool is_decimal(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);  // str.capitalize
std::string title(std::string_view text);       // str.title
std::string swap_case(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// str.strip: of whitespace, or of the characters of `*characters`.
std::string_view strip(std::string_view text, Side side, const std::string_view* characters);

// str.splitlines: without the ends of lines, or with them.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

}  // namespace skein::jinja
