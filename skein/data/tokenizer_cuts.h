// Where a text may be cut so that encoding the parts gives exactly the ids of the whole.
//
// BPE merges neighbours only into a piece of the vocabulary. So if no piece has the characters a
// and b side by side, no merge ever crosses from a to b, and the text to the left of that place has
// no effect on the text to its right. SentencePiece's own time and memory grow faster than the text
// (16 MB in one call: 40 s and 1.2 GB); cut into parts of a few KiB they grow in proportion to it.
#pragma once

#include <array>
#include <bitset>
#include <string_view>

#include "skein/data/tokenizer_model.h"

namespace skein {

class TokenizerCuts {
 public:
  explicit TokenizerCuts(const SentencePieceModel& model);

  // False for models whose normalizer or fallback depends on neighbouring characters.
  static bool allowed(const SentencePieceModel& model);

  // The first place at or after `from` (at least 1) where `text` may be cut, otherwise its end.
  // Only places before an ASCII character are considered, which are never inside a character.
  size_t next(std::string_view text, size_t from) const;

 private:
  static constexpr size_t kOther = 128;  // any non-ASCII character

  std::array<std::bitset<kOther>, kOther + 1> joined_;  // [left][right]: adjacent in a piece
};

}  // namespace skein
