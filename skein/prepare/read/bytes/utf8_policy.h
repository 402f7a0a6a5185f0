// Whether text is UTF-8, and what becomes of it where it is not.
// Source   Unicode 15, table 3-7 and section 3.9, "U+FFFD Substitution of Maximal Subparts": what
//          WHATWG's decoder and Python's errors="replace" do
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "skein/base/error.h"

namespace skein {

enum class InvalidUtf8 {
  kFail,        // an error; a text of a folder is passed over
  kReplace,     // U+FFFD in place of what is not UTF-8
  kSkip,        // the document is left out
  kFailAlways,  // an error also for a text of a folder, unless it is binary data
};

struct Utf8Policy {
  InvalidUtf8 invalid = InvalidUtf8::kFail;
  std::function<void()> on_invalid;  // called for each document that is changed or left out
};

bool is_utf8(std::string_view text);

// Throws Error{code} for what is no text in any encoding: it begins as a PNG image does, say, or
// holds a null byte.
void refuse_binary(std::string_view bytes, const std::string& where, ErrorCode code);

// Throws Error{code} unless `text` is UTF-8.
void check_utf8(std::string_view text, const std::string& where,
                ErrorCode code = ErrorCode::kInvalid);

std::string replace_invalid_utf8(std::string_view text);

// Applies the policy: false if the document is to be left out. What is replaced lies in `repaired`.
bool accept_utf8(std::string_view& text, std::string& repaired, const Utf8Policy& policy,
                 const std::function<std::string()>& where);

}  // namespace skein
