// Encoding and decoding with the BPE of a tokenizer.json: the ids of Hugging Face `tokenizers`.
//
// A text is normalized, split into words, and the bytes or characters of each word are merged; a
// word that came before is looked up. Patterns of bpe/steps/split_pattern.h run as code of their
// own, all else by the steps of bpe/steps/pre_tokenizer.h. Text that spells a special token is
// ordinary text, as with `encode_special_tokens`, unless one asks for it; other added tokens are
// found in it.
//
// Errors   encode: Error{kUnsupported} where an expression of the tokenizer takes too long for a
//          text (bpe/expression/expression.h)
// Threads  several may encode and decode at once
// Cost     encoding English with Llama 3's pattern: bench/tokenizer.py
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/bpe/character_words.h"
#include "skein/bpe/merges.h"
#include "skein/bpe/pool.h"
#include "skein/bpe/word_cache.h"
#include "skein/data/tokenizer/byte_level/added_tokens.h"
#include "skein/data/tokenizer/byte_level/byte_level_model.h"

namespace skein {

class ByteLevelBpe {
 public:
  explicit ByteLevelBpe(ByteLevelModel model);

  // Appends the ids of `text`; a byte that is not UTF-8 counts as U+FFFD. special: what spells a
  // special token is that token.
  void encode(std::string_view text, std::vector<int32_t>& out, bool special = false) const;

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
    bpe::Normalizer::Session normalizer;
    bpe::PreTokenizer::Session words;
    std::vector<int32_t> symbols;
  };

  void add_token(const AddedToken& token, bpe::Normalizer::Session& session);
  void encode_normalized(std::string_view text, bool is_first, Session& session,
                         bpe::IdSink& out) const;
  void encode_words(std::string_view text, Session& session, bpe::IdSink& out) const;
  void encode_steps(std::string_view text, bool is_first, Session& session, bpe::IdSink& out) const;
  void encode_word(std::string_view word, Session& session, std::vector<int32_t>& out) const;
  std::string token_of(int32_t id) const;

  ByteLevelModel model_;
  bpe::SplitPattern pattern_;
  bpe::Merges merges_;
  std::array<int32_t, 256> byte_ids_ = {};
  std::optional<bpe::CharacterWords> characters_;  // where symbols are no bytes
  std::vector<std::string> texts_;          // of each id; of special tokens and unused ids, none
  std::vector<bool> has_token_, is_added_;  // by id
  AddedTokens before_normalization_, after_normalization_;
  mutable bpe::Pool<Session> sessions_;
};

}  // namespace skein
