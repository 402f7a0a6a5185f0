#include "skein/base/text/units.h"

#include <fmt/format.h>

#include <cmath>

namespace skein {
namespace {

std::string scaled(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix < 6) {
    value /= 1000;
    ++prefix;
  }
  const int digits = prefix == 0                ? 0
                     : std::fabs(value) < 9.995 ? 2
                     : std::fabs(value) < 99.95 ? 1
                                                : 0;
  std::string text = fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
  if (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string format_bytes(int64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string format_count(double count) { return scaled(count, ""); }

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole / 3600 % 24);
}

std::string format_short_duration(double seconds) {
  if (!(seconds < 9.995) || seconds < 0) return format_duration(seconds);
  if (seconds == 0) return "0 s";
  // From 0.9995 on, three digits round to 1.00 of the next unit.
  if (seconds >= 0.9995) return fmt::format("{:.2f} s", seconds);
  const bool is_ms = seconds >= 0.9995e-3;
  const double value = seconds * (is_ms ? 1e3 : 1e6);
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, is_ms ? "ms" : "us");
}

std::string counted(int64_t count, std::string_view noun, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

}  // namespace skein
