#include "skein/prepare/read/json_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "skein/base/text/python_json.h"
#include "skein/chat/conversation.h"
#include "skein/data/corpus/text_field.h"
#include "skein/prepare/read/bytes/utf8_policy.h"
#include "skein/prepare/read/json_scan.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kShownBytes = 160;  // of a parser's message, and of the keys found
constexpr size_t kSearchedBytes = size_t{16} << 20;
constexpr size_t kMaxDepth = 8;
constexpr size_t kMostPlaces = 5;

using nlohmann::json;

struct JsonProblem {
  std::string text;  // empty: none
  InvalidObject::Diagnosis kind;
};

// Picks the document, the string at one path of keys, from the parser's events, so that memory is
// bounded by the line: a line of 100 MB takes no more than its own length.
class DocumentEvents : public json::json_sax_t {
 public:
  explicit DocumentEvents(const KeyPath& path, const std::string& file = "FILE")
      : path_(path), file_(file) {}
  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a boolean"); }
  bool number_integer(json::number_integer_t) override { return other("a number"); }
  bool number_unsigned(json::number_unsigned_t) override { return other("a number"); }
  bool number_float(json::number_float_t, const std::string&) override { return other("a number"); }
  bool binary(json::binary_t&) override { return other("binary"); }
  bool string(std::string& value) override {
    if (!at_text()) return other("a string");
    text_ = std::move(value);
    found_ = "a string";
    return true;
  }
  bool start_object(size_t) override {
    other("an object");
    const bool leads_on = is_next_ && depth_ == num_entered_ + 1 && num_entered_ + 1 < path_.size();
    if (leads_on) ++num_entered_;
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    other("an array");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (num_entered_ > 0 && depth_ == num_entered_) --num_entered_;
    return true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& name) override {
    if (depth_ == num_entered_ + 1) {
      is_next_ = name == path_[num_entered_];
      if (is_next_) found_.clear();  // of equal keys the last one counts
    }
    const bool is_other = depth_ == 1 && (!is_next_ || path_.size() > 1);
    if (is_other && keys_.size() < kShownBytes) {
      keys_ += (keys_.empty() ? "`" : ", `") + name.substr(0, kShownBytes) + "`";
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    std::string what = error.what();
    if (const size_t skip = what.find("] "); skip != std::string::npos)
      what = what.substr(skip + 2);
    error_ = fmt::format("not JSON at byte {} ({})", position,
                         what.size() > kShownBytes ? what.substr(0, kShownBytes) + "…" : what);
    error_at_ = position;
    return false;
  }

  bool has_key() const { return !found_.empty(); }
  bool lacks_key() const { return error_.empty() && top_ == "an object" && found_.empty(); }
  std::string& text() { return text_; }

  // What is wrong; if nothing is, the document is in text().
  JsonProblem problem(std::string_view object) const {
    if (!error_.empty()) return syntax_problem(object);
    const std::string wanted = fmt::format("{}", fmt::join(path_, "."));
    if (top_ == "a string") {
      return {
          fmt::format("is a string: expected an object with a string `{}`; `jq -c '{{{}: .}}' {} "
                      "> NEW.jsonl` makes such (of an array: '.[] | {{{}: .}}')",
                      wanted, wanted, file_, wanted),
          {}};
    }
    if (top_ != "an object") {
      return {fmt::format("is {}: expected an object with a string `{}`", top_, wanted), {}};
    }
    if (found_.empty()) {
      return {fmt::format("has no key `{}` (its keys: {}): expected a string `{}` (--text-column "
                          "names another{})",
                          wanted, keys_.empty() ? "none" : keys_, wanted,
                          looks_like_conversation(keys_) ? kChatAdvice : ""),
              {}};
    }
    // A null is a document that is empty, as in a table.
    if (found_ == "null" || found_ == "a string") return {};
    const bool is_column = path_.size() == 1 && (found_ == "an array" || found_ == "an object");
    if (!is_column) return {fmt::format("`{}` is {}: expected a string", wanted, found_), {}};
    return {fmt::format("`{}` is {}: expected a string (of a table that has its columns one after "
                        "another, as pandas writes one, `jq -c '.{}[] | {{{}: .}}' {} > "
                        "NEW.jsonl` makes a line of each row)",
                        wanted, found_, wanted, wanted, file_),
            {}};
  }

 private:
  bool at_text() const {
    return is_next_ && depth_ == num_entered_ + 1 && num_entered_ + 1 == path_.size() &&
           top_ == "an object";
  }
  bool other(const char* kind) {
    if (depth_ == 0) top_ = kind;
    if (at_text()) found_ = kind;
    return true;
  }

  JsonProblem syntax_problem(std::string_view object) const {
    const size_t last = object.find_last_not_of(" \t\r\n");
    const bool ends_early = last == object.npos || error_at_ > last + 1;
    // The text ends where JSON would continue: `{`, `"a": [`, `"b": 1,`.
    const char end = last == object.npos ? ' ' : object[last];
    JsonScan scan(object, true);
    std::string buffer;
    std::string_view text;
    scan.find_string(path_, buffer, text);
    if (scan.is_mended()) {
      return {error_ +
                  ": half of a character stands alone, as Python writes it; --invalid-utf8 replace "
                  "takes it for U+FFFD",
              {.is_broken = true, .has_advice = true}};
    }
    const bool is_behind = depth_ == 0 && top_ == "an object" && !ends_early && error_at_ > 0;
    if (is_behind && object[error_at_ - 1] == '{') {
      return {error_ + ": several objects on a line; --format json reads them",
              {.is_broken = true, .has_advice = true}};
    }
    if (ends_early && object.starts_with('{') && (end == '{' || end == '[' || end == ',')) {
      return {error_ + ": the first line of an object that has several? --format json reads them",
              {.is_broken = true, .has_advice = true}};
    }
    return {error_ + ": expected one JSON object a line", {.is_broken = true}};
  }

  const KeyPath& path_;
  const std::string file_;
  size_t depth_ = 0;
  size_t num_entered_ = 0;  // objects at the first keys of the path, in which the parser is
  bool is_next_ = false;    // the last key there was the next one of the path
  std::string top_, found_, text_, keys_, error_;
  size_t error_at_ = 0;
};

// Where texts may lie in an object that has none outermost: paths through objects, and the first
// array of objects.
struct TextPaths {
  std::vector<std::string> paths;
  std::string array;  // such as "data"

  void search(const json& object, const std::string& prefix, size_t depth) {
    for (const auto& [key, value] : object.items()) {
      if (paths.size() == kMostPlaces) return;
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      const bool is_text = std::find(std::begin(kTextColumns), std::end(kTextColumns), key) !=
                           std::end(kTextColumns);
      if (is_text && value.is_string() && depth > 0) paths.push_back(path);
      if (value.is_object() && depth < kMaxDepth) search(value, path, depth + 1);
      if (array.empty() && value.is_array() && is_set(key, value) && is_plain(path)) array = path;
    }
  }

 private:
  // Needs no quotes in a path of jq.
  static bool is_plain(const std::string& path) {
    return path.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == path.npos;
  }
  static bool is_set(const std::string& key, const json& value) {
    if (value.empty() || !value.front().is_object()) return false;
    const auto has = [&](const char* column) { return value.front().contains(column); };
    constexpr std::string_view kSets =
        " data rows documents docs examples records items results train paragraphs ";
    return (std::any_of(std::begin(kTextColumns), std::end(kTextColumns), has) &&
            !value.front().contains("role")) ||
           kSets.find(fmt::format(" {} ", key)) != kSets.npos;
  }
};

JsonProblem with_places(JsonProblem problem, std::string_view object, const std::string& file) {
  if (object.size() > kSearchedBytes) return problem;
  const json parsed = json::parse(object, nullptr, false);
  if (!parsed.is_object()) return problem;
  TextPaths places;
  places.search(parsed, "", 0);
  problem.text += advice_of_places(places.paths);
  if (places.paths.empty() && !places.array.empty()) {
    problem.text += fmt::format(
        "; its array `{}` holds objects: `jq -c '.{}[]' {} > NEW.jsonl` makes a line of each",
        places.array, places.array, file);
  }
  return problem;
}

}  // namespace

bool has_key(std::string_view object, const KeyPath& path) {
  DocumentEvents events(path);
  return json::sax_parse(plain_json(object, true).text, &events) && events.has_key();
}

std::string parse_slowly(std::string_view object, const std::string& where, const KeyPath& path,
                         const std::string& file) {
  // The parser would take a null byte for the end of the text.
  if (const size_t nul = object.find('\0'); nul != std::string_view::npos) {
    throw InvalidObject(
        ErrorCode::kInvalid,
        fmt::format("{}: not JSON at byte {} (a null byte): expected one JSON object a line", where,
                    nul + 1),
        {.is_broken = true});
  }
  const bool names_key = object.find('"' + path.back() + '"') != std::string_view::npos;
  check_utf8(object, where, names_key ? ErrorCode::kCorrupt : ErrorCode::kInvalid);
  // Halves of surrogate pairs matter in the text alone.
  JsonScan scan(object, true);
  std::string buffer;
  std::string_view found;
  scan.find_string(path, buffer, found);
  const std::string plain = plain_json(object, !scan.is_mended()).text;
  DocumentEvents events(path, file);
  json::sax_parse(plain, &events);
  JsonProblem problem = events.problem(object);
  if (problem.text.empty()) return std::move(events.text());
  const bool lacks_key = events.lacks_key();
  if (lacks_key) problem = with_places(std::move(problem), plain, file);
  // Either the line is no document at all, or it is a broken one.
  const bool is_damaged = names_key && !lacks_key;  // else the key is nested deeper
  throw InvalidObject(is_damaged ? ErrorCode::kCorrupt : ErrorCode::kInvalid,
                      fmt::format("{}: {}", where, problem.text), problem.kind);
}

}  // namespace skein
