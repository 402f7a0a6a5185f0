// launch.nodes: "N" or "MIN:MAX" machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace skein {

// A positive whole number without sign, blanks and trailing characters.
std::optional<int64_t> parse_count(std::string_view text);

struct NodeRange {
  int64_t least = 1, most = 1;
};

// nullopt: the text is neither.
std::optional<NodeRange> parse_node_range(std::string_view nodes);

}  // namespace skein
