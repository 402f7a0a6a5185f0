#include "skein/evaluate/tasks/top_level_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/evaluate/yaml/plain_scalar.h"
#include "skein/evaluate/yaml/yaml_value.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }
bool is_plain(char c) { return is_word(c) || c == '.' || c == '/' || c == '-'; }

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

bool is_blank_or_comment(std::string_view rest) {
  const std::string_view bare = without_blanks(rest);
  return bare.empty() || (bare.front() == '#' && rest.front() == ' ');
}

// Where the quoted scalar at the beginning of `text` ends; 0: not in `text`.
size_t end_of_quoted(std::string_view text) {
  const char quote = text.front();
  for (size_t at = 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || !text.substr(at + 1).starts_with('\'')) return at + 1;
      ++at;
    }
  }
  return 0;
}

// A scalar of one line that is text, without escapes; `text` has no blanks before it.
std::optional<std::string> simple_text(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '"' || text.front() == '\'') {
    const size_t end = end_of_quoted(text);
    if (end == 0 || !is_blank_or_comment(text.substr(end))) return std::nullopt;
    const std::string_view inside = text.substr(1, end - 2);
    if (inside.find_first_of("\\'\"\t") != std::string_view::npos) return std::nullopt;
    return std::string(inside);
  }
  if (!is_word(text.front()) && text.front() != '.' && text.front() != '/') return std::nullopt;
  const auto end =
      static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
  if (!is_blank_or_comment(text.substr(end))) return std::nullopt;
  const Value value = plain_scalar(text.substr(0, end));
  if (!value.is_string()) return std::nullopt;
  return value.text();
}

// Reads line after line; stops where it is not sure.
class Scan {
 public:
  // The line at the beginning of `text`, which reaches the end of the file, and what belongs to it;
  // how many bytes that is, or 0.
  size_t add(std::string_view text) {
    num_bytes_ = std::min(text.find('\n'), text.size() - 1) + 1;
    rest_ = text;
    std::string_view line = text.substr(0, num_bytes_);
    if (line.ends_with('\n')) line.remove_suffix(1);
    return add_line(line) ? num_bytes_ : 0;
  }

  // The key before is complete.
  bool close() {
    if (current_ == nullptr || !may_have_items_) return current_ = nullptr, true;
    if (!has_items_) return false;  // null, or a form of its own
    *current_ = Value::list(std::move(items_));
    items_ = {};
    current_ = nullptr;
    return true;
  }

  TopLevelKeys keys;

 private:
  bool add_line(std::string_view line) {
    if (line.find_first_not_of(' ') == std::string_view::npos) return true;
    const std::string_view bare = without_blanks(line);
    if (bare.front() == '#') return true;
    if (bare == "-" || bare.starts_with("- ")) return any_key_ && add_item(bare);
    if (line.front() == ' ') return any_key_ && add_indented();
    return close() && add_key(line);
  }

  bool add_key(std::string_view line) {
    const bool is_quoted = line.front() == '"';
    const std::string_view rest = line.substr(is_quoted ? 1 : 0);
    if (rest.empty() || !is_letter(rest.front())) return false;
    const auto size =
        static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_word) - rest.begin());
    const size_t end = is_quoted ? size + 2 : size;
    if (is_quoted && !rest.substr(size).starts_with('"')) return false;
    if (end >= line.size() || line[end] != ':') return false;
    if (end + 1 < line.size() && line[end + 1] != ' ') return false;
    any_key_ = true;
    const std::string_view value = without_blanks(line.substr(end + 1));
    current_ = keys.find(rest.substr(0, size));
    has_items_ = false;
    may_have_items_ = value.empty() || value.front() == '#';
    if (may_have_items_) return true;
    if (current_ == nullptr) return pass_over(value);
    auto text = simple_text(value);
    if (text) *current_ = Value::string(std::move(*text));
    return text.has_value();
  }
  // A value that does not matter: a quoted scalar may have several lines.
  bool pass_over(std::string_view value) {
    if (value.front() != '"' && value.front() != '\'') return true;
    const auto begin = static_cast<size_t>(value.data() - rest_.data());
    const size_t size = end_of_quoted(rest_.substr(begin));
    if (size == 0) return false;
    const size_t line_end = std::min(rest_.find('\n', begin + size), rest_.size());
    num_bytes_ = std::min(line_end + 1, rest_.size());
    return is_blank_or_comment(rest_.substr(begin + size, line_end - begin - size));
  }
  bool add_item(std::string_view bare) {
    if (current_ == nullptr) return true;
    if (!may_have_items_) return false;
    const bool is_first = !std::exchange(has_items_, true);
    if (current_ == &keys.task) return true;
    auto text = simple_text(without_blanks(bare.substr(1)));
    if (!text || (!is_first && items_.empty())) return false;
    items_.push_back(Value::string(std::move(*text)));
    return true;
  }
  // What is below an item or a key.
  bool add_indented() { return current_ == nullptr || (current_ == &keys.task && has_items_); }

  std::string_view rest_;
  size_t num_bytes_ = 0;
  bool any_key_ = false;
  Value* current_ = nullptr;  // of the key that the lines belong to; null: one that does not matter
  bool may_have_items_ = false, has_items_ = false;
  std::vector<Value> items_;
};

}  // namespace

Value* TopLevelKeys::find(std::string_view key) {
  if (key == "task") return &task;
  if (key == "group") return &group;
  if (key == "tag") return &tag;
  if (key == "include") return &include;
  return key == "class" ? &python_class : nullptr;
}

std::optional<TopLevelKeys> scan_top_level_keys(std::string_view text) {
  if (text.find('\r') != std::string_view::npos) return std::nullopt;
  Scan scan;
  while (!text.empty()) {
    const size_t size = scan.add(text);
    if (size == 0) return std::nullopt;
    text.remove_prefix(size);
  }
  if (!scan.close()) return std::nullopt;
  return std::move(scan.keys);
}

TopLevelKeys top_level_keys(std::string_view text, const std::string& what) {
  if (auto keys = scan_top_level_keys(text)) return std::move(*keys);
  const Value value = yaml_value(text, what);
  if (!value.is(Kind::kDict))
    fail(ErrorCode::kInvalid, "{}: a {}; expected a dict, such as `task: name`", what,
         jinja::type_name(value));
  TopLevelKeys keys;
  for (const auto& [key, entry] : value.as_dict().entries) {
    if (!key.is_string()) continue;
    if (Value* const found = keys.find(key.text())) *found = entry;
  }
  return keys;
}

}  // namespace skein
