// A value for every code point, from ranges of those that have one.
#pragma once

#include <algorithm>
#include <vector>

namespace skein::bpe {

template <typename Value>
struct CodePointRange {
  char32_t first, last;
  Value value;
};

// [code]: up to U+10FFFF; `otherwise` where no range is.
template <typename Value, typename Ranges>
std::vector<Value> code_point_table(const Ranges& ranges, Value otherwise) {
  std::vector<Value> table(0x110000, otherwise);
  for (const CodePointRange<Value>& range : ranges) {
    std::fill(table.begin() + range.first, table.begin() + range.last + 1, range.value);
  }
  return table;
}

}  // namespace skein::bpe
