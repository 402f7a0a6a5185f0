// JSON as Python's json module reads and writes it, in the terms of nlohmann::json: the one
// grammar of lines that others wrote.
//
// Format   RFC 8259, and NaN, Infinity, -Infinity; numbers of any size, which overflow to an
//          infinity, and whole ones that stay whole
// How      a number that nlohmann::json refuses becomes one that it takes, of the same length, so
//          that places in errors stay what they are. All else is left as it is
// Source   json.decoder and json.scanner of CPython 3.12
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct PlainJson {
  std::string text;
  std::vector<std::string> integers;  // those that no double holds, in their order
  bool is_mended = false;             // halves of surrogate pairs stood alone in it
};

// `mends`: halves of surrogate pairs that stand alone (\ud83d) become \ufffd.
PlainJson plain_json(std::string_view text, bool mends = false);

// Whether half of a surrogate pair stands alone in a string of `text`.
bool has_lone_surrogate(std::string_view text);

// What a number of PlainJson::text stands for. No other number is written so there.
inline constexpr std::string_view kPlainNan = "0E0", kPlainInfinity = "0E1",
                                  kPlainMinusInfinity = "-0E1", kPlainInteger = "0E2";

}  // namespace skein
