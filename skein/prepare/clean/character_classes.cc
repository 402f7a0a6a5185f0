#include "skein/prepare/clean/character_classes.h"

#include <algorithm>
#include <vector>

namespace skein {
namespace {

struct Range {
  char32_t first, last;
  uint32_t classes;
};

constexpr Range kRanges[] = {
#include "skein/prepare/clean/character_classes.inc"
};

}  // namespace

const uint32_t* character_classes() {
  static const std::vector<uint32_t> classes = [] {
    std::vector<uint32_t> table(0x110000, 0);
    for (const Range& range : kRanges) {
      std::fill(table.begin() + range.first, table.begin() + range.last + 1, range.classes);
    }
    return table;
  }();
  return classes.data();
}

std::string_view CharacterReader::strip_begin(std::string_view text) const {
  while (!text.empty()) {
    const Character character = first(text.data(), text.data() + text.size());
    if ((character.classes & character::kSpace) == 0) break;
    text.remove_prefix(static_cast<size_t>(character.size));
  }
  return text;
}

std::string_view CharacterReader::strip_end(std::string_view text) const {
  while (!text.empty()) {
    const Character character = last(text.data(), text.data() + text.size());
    if ((character.classes & character::kSpace) == 0) break;
    text.remove_suffix(static_cast<size_t>(character.size));
  }
  return text;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xc0) != 0x80;
  return count;
}

}  // namespace skein
