// Encoding and decoding with byte-level BPE: the ids of Hugging Face `tokenizers`.
//
// A text is normalized, split into words by a pattern (bpe/split_pattern.h), and the bytes of each
// word are merged; a word that came before is looked up. Text that spells a special token is
// ordinary text, as with `encode_special_tokens`; other added tokens are found in it.
//
// Threads  several may encode and decode at once
// Cost     encoding English with Llama 3's pattern: bench/tokenizer.py
#pragma once

#include <array>
#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/bpe/merges.h"
#include "skein/bpe/pool.h"
#include "skein/bpe/word_cache.h"
#include "skein/data/byte_level_model.h"

namespace skein {

class ByteLevelBpe {
 public:
  explicit ByteLevelBpe(ByteLevelModel model);

  // Appends the ids of `text`; a byte that is not UTF-8 counts as U+FFFD.
  void encode(std::string_view text, std::vector<int32_t>& out) const;

  // Ids must be 0 … num_ids - 1. Special tokens give no text; bytes that are not UTF-8, U+FFFD.
  std::string decode(std::span<const int32_t> ids) const;

  // False for holes of the vocabulary.
  bool has_token(int32_t id) const {
    return id >= 0 && id < model_.num_ids && has_token_[static_cast<size_t>(id)];
  }

  const ByteLevelModel& model() const { return model_; }

 private:
  struct Session {  // what one thread at a time needs
    bpe::WordCache cache;
    std::string composed;
    std::vector<int32_t> symbols;
  };
  struct Found {
    const AddedToken* token = nullptr;
    size_t begin = 0;
  };
  // Added tokens that are looked for at the same time.
  struct Added {
    std::vector<AddedToken> tokens;  // the longest first
    std::bitset<256> begins;
    bool any = false;  // one that is not special
  };

  static Found find_added(std::string_view text, const Added& added);
  template <class EncodeRest>
  static void encode_around(std::string_view text, const Added& added, bpe::IdSink& out,
                            EncodeRest&& encode_rest);
  void encode_words(std::string_view text, Session& session, bpe::IdSink& out) const;
  void encode_word(std::string_view word, Session& session, std::vector<int32_t>& out) const;

  ByteLevelModel model_;
  bpe::SplitPattern pattern_;
  bpe::Merges merges_;
  std::array<int32_t, 256> byte_ids_ = {};
  std::vector<std::string> texts_;  // of each id; of special tokens and unused ids, none
  std::vector<bool> has_token_;     // by id
  Added before_normalization_, after_normalization_;
  mutable bpe::Pool<Session> sessions_;
};

}  // namespace skein
