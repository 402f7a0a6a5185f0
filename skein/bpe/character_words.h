// BPE over characters, as `tokenizers` does it with models made of SentencePiece's: each character
// is a symbol, or its bytes are, or it is unknown; then symbols merge.
//
// A text that nothing cut before is cut here, where no merge has the two characters on both sides
// of its seam: the ids of the words, one after another, are the text's.
//
// Cost    in proportion to the text
// Source  https://github.com/huggingface/tokenizers: tokenizers/src/models/bpe/model.rs
#pragma once

#include <array>
#include <bitset>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skein/bpe/merges.h"
#include "skein/bpe/vocabulary.h"

namespace skein::bpe {

struct CharacterOptions {
  int32_t unknown_id = -1;  // -1: unknown characters vanish
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool cuts = true;
};

class CharacterWords {
 public:
  // `merges` are pairs of ids, of tokens whose texts `text_of` gives.
  template <class TextOf>
  CharacterWords(const Vocabulary& vocabulary,
                 const std::vector<std::pair<int32_t, int32_t>>& merges,
                 const CharacterOptions& options, TextOf&& text_of)
      : options_(options) {
    read(vocabulary);
    for (const auto& [left, right] : merges) add_seam(text_of(left), text_of(right));
  }

  const char* end_of_word(const char* at, const char* end) const;

  // The symbols of a word, which do not merge yet.
  void append_symbols(std::string_view word, std::vector<int32_t>& symbols) const;

  bool has_all_bytes() const { return has_all_bytes_; }

 private:
  static constexpr size_t kSmall = 129;  // ASCII, and U+2581

  static size_t small(char32_t code) {
    return code < 128 ? code : code == 0x2581 ? kSmall - 1 : SIZE_MAX;
  }
  void read(const Vocabulary& vocabulary);
  void add_seam(std::string_view left, std::string_view right);
  bool is_joined(char32_t left, char32_t right) const;
  int32_t symbol_of(char32_t code) const;

  CharacterOptions options_;
  std::array<int32_t, 128> ascii_{};
  std::unordered_map<char32_t, int32_t> others_;
  std::array<int32_t, 256> byte_ids_{};
  bool has_all_bytes_ = true;
  std::array<std::bitset<kSmall>, kSmall> joined_small_;
  Merges joined_;  // pairs of characters, as a set
};

}  // namespace skein::bpe
