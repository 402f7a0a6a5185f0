#include "skein/launch/jobs/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

// A word that no version of YAML takes for a number, a truth value, a date or nothing.
bool is_plain_word(const std::string& text) {
  static constexpr std::array<std::string_view, 9> kMeaning = {"true", "false", "yes", "no", "on",
                                                               "off",  "null",  "y",   "n"};
  if (text.empty()) return false;
  if (std::isalpha(static_cast<unsigned char>(text[0])) == 0 && text[0] != '/') return false;
  std::string lower;
  for (const char c : text) {
    const bool is_letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!is_letter && std::string_view("-_./").find(c) == std::string_view::npos) return false;
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::find(kMeaning.begin(), kMeaning.end(), lower) == kMeaning.end();
}

// JSON writes a character beyond the 16-bit ones as a pair of surrogates, \ud83d\ude00, which are
// no characters of YAML: there it is \U0001f600.
std::string joined_surrogates(const std::string& json) {
  const auto unit = [&](size_t at) {
    uint32_t number = 0;
    const bool is_one = at + 6 <= json.size() && json[at] == '\\' && json[at + 1] == 'u';
    if (is_one) std::from_chars(json.data() + at + 2, json.data() + at + 6, number, 16);
    return number;
  };
  std::string text;
  for (size_t at = 0; at < json.size();) {
    const uint32_t high = unit(at), low = unit(at + 6);
    if (high >> 10 == 0x36 && low >> 10 == 0x37) {
      text += fmt::format("\\U{:08x}", 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
      at += 12;
      continue;
    }
    const size_t length = json[at] == '\\' ? 2 : 1;  // the second of two begins nothing
    text += json.substr(at, length);
    at += length;
  }
  return text;
}

std::string scalar(const OrderedJson& value) {
  if (value.is_string() && is_plain_word(value.get<std::string>())) return value;
  return joined_surrogates(ascii_json_text(value));
}

// Lines that a block holds as they are: printable, the first not indented, the last complete.
bool is_block(const OrderedJson& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  const auto is_printable = [](unsigned char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); };
  return text.find('\n') < text.size() - 1 && text.front() != ' ' && text.front() != '\n' &&
         text.back() == '\n' && text[text.size() - 2] != '\n' &&
         std::all_of(text.begin(), text.end(), is_printable);
}

void write(const OrderedJson& value, const std::string& indent, std::string& out);

// What stands behind `key:` or `-`.
void write_below(const OrderedJson& value, const std::string& indent, std::string& out) {
  if (value.is_structured() && !value.empty()) {
    out += "\n";
    return write(value, indent, out);
  }
  if (!is_block(value)) {
    out += " " + scalar(value) + "\n";
    return;
  }
  out += " |\n";
  const std::string& text = value.get_ref<const std::string&>();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end > begin) out += indent;
    out += text.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
}

void write(const OrderedJson& value, const std::string& indent, std::string& out) {
  const std::string deeper = indent + "  ";
  if (value.is_object()) {
    for (const auto& [key, below] : value.items()) {
      out += indent + scalar(key) + ":";
      write_below(below, deeper, out);
    }
  } else {
    for (const OrderedJson& item : value) {
      std::string text;
      write_below(item, deeper, text);
      // The first key of an object stands on the line of its dash.
      const bool is_object = item.is_object() && !item.empty();
      out += indent + "-" + (is_object ? " " + text.substr(1 + deeper.size()) : text);
    }
  }
}

}  // namespace

std::string yaml_text(const OrderedJson& value) {
  if (!value.is_structured() || value.empty()) return scalar(value) + "\n";
  std::string text;
  write(value, "", text);
  return text;
}

}  // namespace skein
