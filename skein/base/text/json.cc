#include "skein/base/text/json.h"

#include <fmt/format.h>

#include <cmath>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/lfs_pointer.h"

namespace skein {

Json parse_json(std::string_view text, const std::string& what) {
  constexpr int kMaxDepth = 256;
  refuse_lfs_pointer(text, what);
  // The parser would take a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::kInvalid, "{}: not valid JSON: a NUL byte at offset {}", what, nul);
  }
  bool too_deep = false;
  try {
    Json json = Json::parse(text.begin(), text.end(), [&](int depth, auto, const Json&) {
      if (depth > kMaxDepth) {
        too_deep = true;
        throw std::length_error("nested too deeply");
      }
      return true;
    });
    return json;
  } catch (const std::exception& error) {
    if (too_deep) fail(ErrorCode::kInvalid, "{}: nested deeper than {} levels", what, kMaxDepth);
    std::string_view why = error.what();
    const size_t line = why.find("at line");
    fail(ErrorCode::kInvalid, "{}: not valid JSON: {}", what,
         line == std::string_view::npos ? why : why.substr(line));
  }
}

Json read_json(const std::string& path) { return parse_json(read_file(path), path); }

std::string json_float(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace skein
