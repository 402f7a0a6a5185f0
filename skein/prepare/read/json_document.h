// The document in a JSON object: the string at one key.
//
// What is read   a key of the outermost object; of equal keys the last one counts. The whole object
//                must be valid JSON (RFC 8259) in UTF-8; lone surrogates are refused.
// How            json_scan.h finds the string; what that does not take is judged by nlohmann::json,
//                which says what is wrong and where, and takes numbers and nesting of any size.
//                Memory beside the text: as many bytes again.
// Errors         Error{kInvalid | kCorrupt} beginning with `where`
// Threads        an object: one at a time
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace skein {

class JsonDocumentParser {
 public:
  explicit JsonDocumentParser(const std::string& key) : key_(key) {}

  // The view is valid until the next call. `where` is asked for only where something is wrong.
  std::string_view parse(std::string_view object, const std::function<std::string()>& where);

 private:
  std::string key_;
  std::string buffer_;
};

}  // namespace skein
