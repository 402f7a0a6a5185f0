// What a full parser says of an object in which json_scan.h finds no document: the text after all,
// or what is wrong, with what helps.
//
// Errors   InvalidObject beginning with `where`: Error{kCorrupt} where the object has the key, else
//          Error{kInvalid}
// Memory   that of the text; of an object without the key, of up to 16 MiB, all of it as well
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"

namespace skein {

// The keys that lead to a text, from the outermost object inwards.
using KeyPath = std::vector<std::string>;

// What is wrong with a value that is no document.
class InvalidObject : public Error {
 public:
  struct Diagnosis {
    bool is_broken = false;   // no JSON
    bool has_advice = false;  // which is for this text, and better than to pass over it
  };
  InvalidObject(ErrorCode code, const std::string& message, Diagnosis kind)
      : Error(code, message), kind_(kind) {}
  const Diagnosis& kind() const { return kind_; }

 private:
  Diagnosis kind_;
};

// The string there. `file` is for commands that the errors name.
std::string parse_slowly(std::string_view object, const std::string& where, const KeyPath& path,
                         const std::string& file);

// Whether the object has a value there, whatever it is.
bool has_key(std::string_view object, const KeyPath& path);

}  // namespace skein
