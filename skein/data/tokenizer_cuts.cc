#include "skein/data/tokenizer_cuts.h"

#include <algorithm>
#include <cstdint>

namespace skein {
namespace {

constexpr std::string_view kSpace = "\u2581";  // how pieces spell a space

// The bytes of the character that begins `text`, which is UTF-8.
size_t character_bytes(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && (static_cast<uint8_t>(text[size]) & 0xc0) == 0x80) ++size;
  return size;
}

}  // namespace

bool TokenizerCuts::allowed(const SentencePieceModel& model) {
  // Without byte fallback, neighbouring unknown characters become one <unk>.
  return model.kind == SentencePieceModel::Kind::kBpe && model.byte_fallback &&
         model.escape_whitespaces && !model.whitespace_is_suffix && !model.has_charsmap &&
         !model.remove_extra_whitespaces;
}

TokenizerCuts::TokenizerCuts(const SentencePieceModel& model) {
  for (const SentencePiece& piece : model.pieces) {
    size_t left = kOther;
    bool left_is_space = false, is_first = true;
    for (std::string_view rest = piece.text; !rest.empty();) {
      const std::string_view character = rest.substr(0, character_bytes(rest));
      rest.remove_prefix(character.size());
      const bool is_space = character == kSpace;
      const size_t right = character.size() == 1 ? static_cast<uint8_t>(character[0]) : kOther;
      const size_t right_ascii = is_space ? ' ' : right;
      if (!is_first && right_ascii != kOther) {
        joined_[left].set(right_ascii);
        if (left_is_space) joined_[' '].set(right_ascii);
      }
      // A space and a U+2581 in the text both look like this in a piece.
      left = right;
      left_is_space = is_space;
      is_first = false;
    }
  }
}

size_t TokenizerCuts::next(std::string_view text, size_t from) const {
  for (size_t place = std::max<size_t>(from, 1); place < text.size(); ++place) {
    const auto right = static_cast<uint8_t>(text[place]);
    if (right >= kOther) continue;
    const size_t left = std::min<size_t>(static_cast<uint8_t>(text[place - 1]), kOther);
    if (!joined_[left][right]) return place;
  }
  return text.size();
}

}  // namespace skein
