// The text of JSON values, whatever bytes their strings hold. JSON holds UTF-8 alone, and a file
// name or a foreign text may be anything: the library's own dump() throws where it is not.
//
// Rule     What a person reads (messages, events, reports): json_text(). What this program or
//          another one reads back (a manifest, a header, a tokenizer): exact_json(), whose error
//          names the text, since a replaced byte would name another file. scripts/lint.sh refuses
//          dump() anywhere else.
#pragma once

#include <string>

#include "skein/base/text/json.h"

namespace skein {

// Bytes that are not UTF-8 become U+FFFD. `indent`: blanks a level; -1: all on one line.
std::string json_text(const Json& json, int indent = -1);
std::string json_text(const OrderedJson& json, int indent = -1);

// The same, with \uXXXX for all but ASCII.
std::string ascii_json_text(const Json& json);
std::string ascii_json_text(const OrderedJson& json);

// Errors  kInvalid: a string is not UTF-8; names `what`, the string's key and the string
std::string exact_json(const Json& json, const std::string& what, int indent = -1);
std::string exact_json(const OrderedJson& json, const std::string& what, int indent = -1);

}  // namespace skein
