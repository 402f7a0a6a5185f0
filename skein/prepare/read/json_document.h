// The document in a JSON object: the string at one key.
//
// What is read   a key of the outermost object; of equal keys the last one counts. Of several names
//                for it, the one that is chosen is the first that the first object has. The whole
//                object must be valid JSON (RFC 8259) in UTF-8; lone surrogates are refused, NaN
//                and Infinity taken where nobody reads them, as Python writes them. A null is an
//                empty document.
// How            json_scan.h finds the string; what that does not take is judged by nlohmann::json,
//                which says what is wrong and where, and takes numbers and nesting of any size.
//                Memory beside the text: as many bytes again.
// Errors         Error{kInvalid | kCorrupt} beginning with `where`
// Threads        an object: one at a time
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

class JsonDocumentParser {
 public:
  // `on_chosen` is called with the key before the first document is returned.
  explicit JsonDocumentParser(std::vector<std::string> keys,
                              std::function<void(const std::string&)> on_chosen = {})
      : keys_(std::move(keys)), on_chosen_(std::move(on_chosen)) {}

  // The view is valid until the next call. `where` is asked for only where something is wrong.
  std::string_view parse(std::string_view object, const std::function<std::string()>& where);

 private:
  void choose(std::string_view object);

  std::vector<std::string> keys_;  // the first is read
  bool is_chosen_ = false;
  std::function<void(const std::string&)> on_chosen_;
  std::string buffer_;
};

}  // namespace skein
