#include "skein/prepare/read/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "skein/base/error.h"
#include "skein/prepare/read/json_scan.h"
#include "skein/prepare/read/utf8.h"

namespace skein {
namespace {

constexpr size_t kShownBytes = 160;  // of a parser's message, and of the keys found

using nlohmann::json;

// Picks the document, the string at one key of the outermost object, from the parser's events, so
// that memory is bounded by the line: a line of 100 MB takes no more than its own length.
class DocumentEvents : public json::json_sax_t {
 public:
  explicit DocumentEvents(const std::string& key) : wanted_(key) {}
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
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    other("an array");
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    is_text_ = name == wanted_;
    if (!is_text_ && keys_.size() < kShownBytes) {
      keys_ += (keys_.empty() ? "`" : ", `") + name.substr(0, kShownBytes) + "`";
    }
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    std::string what = error.what();
    if (const size_t skip = what.find("] "); skip != std::string::npos)
      what = what.substr(skip + 2);
    if (what.size() > kShownBytes) what = what.substr(0, kShownBytes) + "…";
    error_ = fmt::format("not JSON at byte {} ({})", position, what);
    return false;
  }

  bool has_key() const { return !found_.empty(); }
  // What is wrong; empty if nothing is, and then the document is in text().
  std::string problem() const {
    if (error_.find("surrogate U+D8") != error_.npos) {
      return error_ +
             ": half of a character stands alone, as Python writes it; --invalid-utf8 replace "
             "takes it for U+FFFD";
    }
    if (!error_.empty() && depth_ == 0 && error_.find("unexpected '{'") != error_.npos) {
      return error_ + ": several objects on a line; --format json reads them";
    }
    if (!error_.empty()) return error_ + ": expected one JSON object a line";
    if (top_ != "an object") {
      return fmt::format("is {}: expected an object with a string `{}`", top_, wanted_);
    }
    if (found_.empty()) {
      return fmt::format(
          "has no key `{}` (its keys: {}): expected a string `{}` (--text-column names another)",
          wanted_, keys_.empty() ? "none" : keys_, wanted_);
    }
    if (found_ == "null") return "";  // a document that is empty, as in a table
    if (found_ != "a string") return fmt::format("`{}` is {}: expected a string", wanted_, found_);
    return "";
  }
  std::string& text() { return text_; }

 private:
  bool at_text() const { return depth_ == 1 && is_text_ && top_ == "an object"; }
  bool other(const char* kind) {
    if (depth_ == 0) top_ = kind;
    if (at_text()) found_ = kind;
    return true;
  }

  const std::string& wanted_;
  int64_t depth_ = 0;
  bool is_text_ = false;  // the last key of the outermost object was the wanted one
  std::string top_, found_, text_, keys_, error_;
};

std::string parse_slowly(std::string_view line, const std::string& where, const std::string& key) {
  // The parser would take a null byte for the end of the text.
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::kInvalid,
         "{}: not JSON at byte {} (a null byte): expected one JSON object a line", where, nul + 1);
  }
  const bool names_key = line.find('"' + key + '"') != std::string_view::npos;
  check_utf8(line, where, names_key ? ErrorCode::kCorrupt : ErrorCode::kInvalid);
  DocumentEvents events(key);
  json::sax_parse(line.begin(), line.end(), &events);
  if (const std::string problem = events.problem(); !problem.empty()) {
    // Either the line is no document at all, or it is a broken one.
    const bool has_key =
        names_key && !problem.starts_with("has no key");  // the key is nested deeper
    fail(has_key ? ErrorCode::kCorrupt : ErrorCode::kInvalid, "{}: {}", where, problem);
  }
  return std::move(events.text());
}

}  // namespace

std::string_view JsonDocumentParser::parse(std::string_view object,
                                           const std::function<std::string()>& where) {
  if (!is_chosen_) choose(object);
  const std::string& key = keys_.front();
  JsonScan scan(object, mends_);
  std::string_view text;
  is_mended_ = false;
  if (scan.find_string(key, buffer_, text) && (scan.is_ascii() || is_utf8(object))) {
    is_mended_ = scan.is_mended();
    return text;
  }
  buffer_ = parse_slowly(object, where(), key);
  return buffer_;
}

// An object that has none of the keys leaves the choice to the next.
void JsonDocumentParser::choose(std::string_view object) {
  const auto has = [&](const std::string& key) {
    std::string_view text;
    if (JsonScan(object, mends_).find_string(key, buffer_, text)) return true;
    DocumentEvents events(key);
    return json::sax_parse(object.begin(), object.end(), &events) && events.has_key();
  };
  const auto found = std::find_if(keys_.begin(), keys_.end(), has);
  if (found == keys_.end()) return;
  is_chosen_ = true;
  std::swap(keys_.front(), *found);
  if (on_chosen_) on_chosen_(keys_.front());
}

JsonDocuments::JsonDocuments(const ReadOptions& options, const DocumentVisitor& visit,
                             std::function<std::string()> where)
    : options_(options),
      visit_(visit),
      where_(std::move(where)),
      parser_(
          text_columns(options),
          [this](const std::string& key) { tell_text_column(key, options_); },
          options.utf8.invalid == InvalidUtf8::kReplace ||
              options.utf8.invalid == InvalidUtf8::kSkip) {}

void JsonDocuments::take(std::string_view object, int64_t record) {
  const Utf8Policy& utf8 = options_.utf8;
  std::string_view text;
  try {
    // The parser checks, where an error is wanted.
    if (utf8.invalid != InvalidUtf8::kFail && !accept_utf8(object, repaired_, utf8, where_)) return;
    text = parser_.parse(object, where_);
  } catch (const Error& error) {
    return pass_over_line(error, options_, has_taken_);
  }
  has_taken_ = true;
  if (parser_.is_mended()) {
    if (utf8.on_invalid) utf8.on_invalid();
    if (utf8.invalid == InvalidUtf8::kSkip) return;
  }
  visit_(text, record);
}

}  // namespace skein
