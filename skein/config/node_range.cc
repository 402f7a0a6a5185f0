#include "skein/config/node_range.h"

#include <charconv>

namespace skein {

std::optional<int64_t> parse_count(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return count;
}

std::optional<NodeRange> parse_node_range(std::string_view nodes) {
  const size_t colon = nodes.find(':');
  const auto least = parse_count(nodes.substr(0, colon));
  const auto most = colon == nodes.npos ? least : parse_count(nodes.substr(colon + 1));
  if (!least || !most || *least > *most) return std::nullopt;
  return NodeRange{*least, *most};
}

}  // namespace skein
