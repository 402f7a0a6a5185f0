// Encoding and decoding with a SentencePiece BPE model: the library's ids, at many times its speed.
//
// A text falls into words, at every place where no piece of the vocabulary has the characters on
// both sides side by side: no merge crosses it. So the words' ids, one after another, are the
// text's, and a word that came before is looked up.
//
// Threads  several may encode and decode at once
// Cost     encoding English with Llama 2's vocabulary: bench/tokenizer.py
// Source   https://github.com/google/sentencepiece: src/bpe_model.cc, normalizer.cc and
//          sentencepiece_processor.cc say what the ids are
#pragma once

#include <array>
#include <bitset>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skein/bpe/merges.h"
#include "skein/bpe/pool.h"
#include "skein/bpe/word_cache.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"

namespace skein {

class SentencePieceBpe {
 public:
  // False for what only the library does: unigram models, rules of normalization, unused pieces.
  static bool can_encode(const SentencePieceModel& model);

  explicit SentencePieceBpe(const SentencePieceModel& model);

  // Appends the ids of `text`; a byte that is not UTF-8 counts as U+FFFD.
  void encode(std::string_view text, std::vector<int32_t>& out) const;

  // The two steps of encode(). Normalized text has spaces, not U+2581; it lies in `held` where it
  // differs from `text`. Without the prefix no space is put before it.
  std::string_view normalize(std::string_view text, bool with_prefix, std::string& held) const;
  void encode_normalized(std::string_view text, std::vector<int32_t>& out) const;

  // `text`, and behind it that of `ids`, which must be 0 … number of pieces - 1. Bytes that are not
  // UTF-8 give U+FFFD.
  std::string decode(std::span<const int32_t> ids, std::string text = {}) const;

 private:
  struct Session {  // what one thread at a time needs
    bpe::WordCache cache;
    std::string text;
    std::vector<int32_t> symbols;
  };

  void add_merges();
  bool is_joined(char32_t left, char32_t right) const;
  const char* end_of_word(const char* at, const char* end) const;
  size_t user_symbol_at(const char* at, const char* end, int32_t& id) const;
  void encode_normalized(std::string_view text, Session& session, std::vector<int32_t>& out) const;
  void encode_words(std::string_view text, Session& session, bpe::IdSink& out) const;
  void encode_word(std::string_view word, Session& session, std::vector<int32_t>& out) const;
  void append_unknown(std::string_view character, std::vector<int32_t>& out) const;

  SentencePieceModel model_;
  int32_t unknown_id_ = 0;
  std::array<int32_t, 256> byte_ids_ = {};
  std::unordered_map<char32_t, int32_t> characters_;  // to symbols
  std::vector<std::string> lone_characters_;          // of symbols that are no pieces
  bpe::Merges merges_;
  std::array<std::bitset<128>, 128> joined_ascii_;
  bpe::Merges joined_;                                         // pairs of characters, as a set
  std::vector<std::pair<std::string, int32_t>> user_symbols_;  // the longest first
  std::bitset<256> begins_user_symbol_;
  mutable bpe::Pool<Session> sessions_;
};

}  // namespace skein
