#include "skein/base/text/toml.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "skein/base/error.h"

namespace skein {
namespace {

bool trips_assertion(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
  } catch (const TomlAssertion&) {
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
  return false;
}

// The line on which the parser fails an assertion: the first one that ends a failing prefix.
size_t find_tripping_line(std::string_view text) {
  std::vector<size_t> line_ends;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') line_ends.push_back(at + 1);
  }
  const auto first = std::partition_point(line_ends.begin(), line_ends.end(), [&](size_t end) {
    return !trips_assertion(text.substr(0, end));
  });
  return static_cast<size_t>(first - line_ends.begin()) + 1;
}

}  // namespace

void throw_toml_assertion() { throw TomlAssertion(); }

std::optional<int64_t> whole_number(const toml::node& node) {
  constexpr double kMost = 9007199254740992;  // 2^53
  if (const auto* value = node.as_integer()) return value->get();
  const auto* value = node.as_floating_point();
  const double number = value == nullptr ? std::nan("") : value->get();
  if (!(std::abs(number) <= kMost) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

toml::table parse_toml(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(ErrorCode::kUsage, "{}:{}: not valid TOML: {}", name, error.source().begin.line,
         error.description());
  } catch (const TomlAssertion&) {
    fail(ErrorCode::kUsage, "{}:{}: not valid TOML: unexpected character", name,
         find_tripping_line(text));
  }
}

}  // namespace skein
