// JSON from outside, parsed with errors that name the file; floats printed so that they read back
// to the same bits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace skein {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Parses `text`; throws Error{kInvalid, "<what>: not JSON: ..."} naming line and column. Nesting
// deeper than 256 levels is refused.
Json parse_json(std::string_view text, const std::string& what);

// Reads and parses a file; the path is named in every error.
Json read_json(const std::string& path);

// The shortest decimal text that reads back to the same float; "null" where it is not finite.
std::string json_float(float value);

}  // namespace skein
