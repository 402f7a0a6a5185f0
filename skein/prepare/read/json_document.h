// The document in a JSON object: the string at one key.
//
// What is read   a key of the outermost object, or of objects inside it (`data.text`, unless a key
//                has that very name); of equal keys the last one counts. Of several names
//                for it, the one that is chosen is the first that the first object has. The whole
//                object must be valid JSON in UTF-8, as Python's json takes it: RFC 8259, NaN,
//                Infinity, numbers and nesting of any size. What is not read never stops it: a lone
//                surrogate is refused in the text alone. A null is an empty document.
// How            json_scan.h finds the string; what that does not take is judged by nlohmann::json,
//                by the same grammar (base/text/python_json.h), which says what is wrong and where.
//                Memory beside the text: as many bytes again.
// Errors         Error{kInvalid | kCorrupt} beginning with `where`
// Threads        an object: one at a time
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/prepare/read/json_problem.h"
#include "skein/prepare/read/readers.h"

namespace skein {

class JsonDocumentParser {
 public:
  // `on_chosen` is called with the key before the first document is returned. `mends`: halves of
  // surrogate pairs that stand alone become U+FFFD. `file`: for the commands that errors name.
  explicit JsonDocumentParser(const std::vector<std::string>& keys,
                              std::function<void(const std::string&)> on_chosen = {},
                              bool mends = false, std::string file = "FILE");

  // The view is valid until the next call. `where` is asked for only where something is wrong.
  std::string_view parse(std::string_view object, const std::function<std::string()>& where);
  bool is_mended() const { return is_mended_; }  // the last object

 private:
  void choose(std::string_view object);

  std::vector<KeyPath> paths_;  // the first is read
  bool is_chosen_ = false;
  std::function<void(const std::string&)> on_chosen_;
  bool mends_, is_mended_ = false;
  std::string file_;
  std::string buffer_;
};

// Hands on the documents in the objects of one file, as its options say.
class JsonDocuments {
 public:
  // All must outlive it.
  JsonDocuments(const ReadOptions& options, const DocumentVisitor& visit, const std::string& file,
                std::function<std::string()> where);
  void take(std::string_view object, int64_t record);

 private:
  void take_chat(std::string_view object, int64_t record);
  [[noreturn]] void refuse_lone_surrogate() const;
  // What becomes of what is no document: on_invalid_line, or the error, with the advice to pass
  // over such lines where it helps.
  void pass_over(const Error& error, bool helps) const;

  const ReadOptions& options_;
  const DocumentVisitor& visit_;
  std::function<std::string()> where_;
  JsonDocumentParser parser_;
  std::string repaired_;
  bool has_taken_ = false;  // an object that is a document
};

}  // namespace skein
