#include "skein/prepare/read/json_document.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/python_json.h"
#include "skein/base/text/shell_words.h"
#include "skein/chat/chat_renderer.h"
#include "skein/prepare/read/bytes/utf8_policy.h"
#include "skein/prepare/read/json_scan.h"

namespace skein {
namespace {

// What a key that a person names may mean: itself, or, if it has dots, a path of keys. A key that
// has the dots goes before a path.
std::vector<KeyPath> meanings(const std::string& key) {
  std::vector<KeyPath> paths{{key}};
  KeyPath path;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('.', begin), key.size());
    path.push_back(key.substr(begin, end - begin));
    begin = end + 1;
  }
  const bool has_empty = std::find(path.begin(), path.end(), "") != path.end();
  if (path.size() > 1 && !has_empty) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

JsonDocumentParser::JsonDocumentParser(const std::vector<std::string>& keys,
                                       std::function<void(const std::string&)> on_chosen,
                                       bool mends, std::string file)
    : on_chosen_(std::move(on_chosen)), mends_(mends), file_(std::move(file)) {
  for (const std::string& key : keys) {
    for (KeyPath& path : meanings(key)) paths_.push_back(std::move(path));
  }
}

std::string_view JsonDocumentParser::parse(std::string_view object,
                                           const std::function<std::string()>& where) {
  if (!is_chosen_) choose(object);
  const KeyPath& path = paths_.front();
  JsonScan scan(object, mends_);
  std::string_view text;
  is_mended_ = false;
  if (scan.find_string(path, buffer_, text) && (scan.is_ascii() || is_utf8(object))) {
    is_mended_ = scan.is_mended();
    return text;
  }
  buffer_ = parse_slowly(object, where(), path, file_);
  return buffer_;
}

// An object that has none of the keys leaves the choice to the next.
void JsonDocumentParser::choose(std::string_view object) {
  const auto has = [&](const KeyPath& path) {
    std::string_view text;
    return JsonScan(object, mends_).find_string(path, buffer_, text) || has_key(object, path);
  };
  const auto found = std::find_if(paths_.begin(), paths_.end(), has);
  if (found == paths_.end()) return;
  is_chosen_ = true;
  std::swap(paths_.front(), *found);
  if (on_chosen_) on_chosen_(fmt::format("{}", fmt::join(paths_.front(), ".")));
}

JsonDocuments::JsonDocuments(const ReadOptions& options, const DocumentVisitor& visit,
                             const std::string& file, std::function<std::string()> where)
    : options_(options),
      visit_(visit),
      where_(std::move(where)),
      parser_(
          text_columns(options),
          [this](const std::string& key) { tell_text_column(key, options_); },
          options.utf8.invalid == InvalidUtf8::kReplace ||
              options.utf8.invalid == InvalidUtf8::kSkip,
          shell_word(file)) {}

void JsonDocuments::pass_over(const Error& error, bool helps) const {
  if (options_.on_invalid_line) return options_.on_invalid_line(error);
  if (!helps) throw Error(error.code(), error.what());
  throw Error(error.code(),
              fmt::format("{}; --skip-invalid-lines passes over such lines", error.what()));
}

void JsonDocuments::take_chat(std::string_view object, int64_t record) {
  RenderedChat chat;
  try {
    const Utf8Policy& utf8 = options_.utf8;
    const bool checks = utf8.invalid != InvalidUtf8::kFail;
    if (checks && !accept_utf8(object, repaired_, utf8, where_)) return;
    if (has_lone_surrogate(object)) {
      if (utf8.invalid != InvalidUtf8::kReplace && utf8.invalid != InvalidUtf8::kSkip) {
        refuse_lone_surrogate();
      }
      if (utf8.on_invalid && repaired_.data() != object.data()) utf8.on_invalid();
      if (utf8.invalid == InvalidUtf8::kSkip) return;
    }
    chat = options_.chat->render(object, where_());
  } catch (const InvalidObject& error) {
    return pass_over(error, false);
  } catch (const Error& error) {
    return pass_over(error, has_taken_);
  }
  has_taken_ = true;
  if (options_.on_spans) options_.on_spans(std::move(chat.spans));
  visit_(chat.text, record);
}

void JsonDocuments::refuse_lone_surrogate() const {
  throw InvalidObject(ErrorCode::kInvalid,
                      fmt::format("{}: half of a character stands alone (\\ud83d, say), as Python "
                                  "writes it; --invalid-utf8 replace takes it for U+FFFD",
                                  where_()),
                      {.is_broken = true, .has_advice = true});
}

void JsonDocuments::take(std::string_view object, int64_t record) {
  if (options_.chat != nullptr) return take_chat(object, record);
  const Utf8Policy& utf8 = options_.utf8;
  std::string_view text;
  try {
    // The parser checks, where an error is wanted.
    if (utf8.invalid != InvalidUtf8::kFail && !accept_utf8(object, repaired_, utf8, where_)) return;
    text = parser_.parse(object, where_);
  } catch (const InvalidObject& error) {
    // Where nothing came before, and this is an object, the file is another than was thought. Where
    // the line has an advice of its own, it holds text that is wanted.
    const InvalidObject::Diagnosis& kind = error.kind();
    return pass_over(error, !kind.has_advice && (has_taken_ || kind.is_broken));
  } catch (const Error& error) {
    return pass_over(error, has_taken_);
  }
  has_taken_ = true;
  if (parser_.is_mended()) {
    if (utf8.on_invalid) utf8.on_invalid();
    if (utf8.invalid == InvalidUtf8::kSkip) return;
  }
  visit_(text, record);
}

}  // namespace skein
