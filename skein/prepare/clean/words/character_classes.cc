#include "skein/prepare/clean/words/character_classes.h"

#include <cstring>
#include <vector>

#include "skein/bpe/unicode/code_point_table.h"

namespace skein {
namespace {

constexpr bpe::CodePointRange<uint32_t> kRanges[] = {
#include "skein/prepare/clean/words/character_classes.inc"
};

}  // namespace

const uint32_t* character_classes() {
  static const std::vector<uint32_t> classes =
      bpe::code_point_table<uint32_t>(kRanges, uint32_t{0});
  return classes.data();
}

std::string_view CharacterReader::strip_begin(std::string_view text) const {
  while (!text.empty()) {
    const ClassifiedCharacter character = first(text.data(), text.data() + text.size());
    if ((character.classes & character::kSpace) == 0) break;
    text.remove_prefix(static_cast<size_t>(character.size));
  }
  return text;
}

std::string_view CharacterReader::strip_end(std::string_view text) const {
  while (!text.empty()) {
    const ClassifiedCharacter character = last(text.data(), text.data() + text.size());
    if ((character.classes & character::kSpace) == 0) break;
    text.remove_suffix(static_cast<size_t>(character.size));
  }
  return text;
}

// All bytes but those that go on with a character, eight at a time.
int64_t count_characters(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  auto count = static_cast<int64_t>(text.size());
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, &text[i], 8);
    count -= static_cast<int64_t>((bytes >> 7 & ~bytes >> 6 & kOnes) * kOnes >> 56);
  }
  for (; i < text.size(); ++i) count -= utf8::is_continuation(text[i]) ? 1 : 0;
  return count;
}

}  // namespace skein
