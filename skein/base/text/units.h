// Numbers for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skein {

std::string format_bytes(int64_t bytes);      // "13.4 GB" (powers of ten), "512 B"
std::string format_count(double count);       // "1.23 M", "42 k", "317"
std::string format_duration(double seconds);  // "3.2 s", "4 min 05 s", "2 h 13 min"
// The same, with three digits for short durations: "9.52 ms", "38.1 us".
std::string format_short_duration(double seconds);
// "1 file", "2 files"; of nouns whose plural has another ending, it is given.
std::string counted(int64_t count, std::string_view noun, std::string_view plural = {});

// Rounds up to a multiple.
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace skein
