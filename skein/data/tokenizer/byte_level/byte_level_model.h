// A tokenizer.json with BPE (GPT-2, Llama 2 and 3, Qwen 2 and 3, Gemma …), parsed and checked.
//
// Read       model "BPE" over bytes (behind the pre-tokenizer ByteLevel) or over characters, with
//            byte_fallback or an unknown token; ignore_merges; the normalizers, pre-tokenizers and
//            decoders of steps.h; added tokens; from a template the token that begins a
//            text
// Refused    anything else: it would give other ids, so its name is said
// Source     https://github.com/huggingface/tokenizers, tokenizers/src
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/bpe/steps/decode_steps.h"
#include "skein/bpe/steps/normalizer.h"
#include "skein/bpe/steps/pre_tokenizer.h"
#include "skein/bpe/steps/split_pattern.h"
#include "skein/bpe/vocabulary.h"
#include "skein/data/tokenizer/byte_level/added_token.h"

namespace skein {

struct ByteLevelModel {
  bpe::Vocabulary vocabulary;  // by the bytes themselves; over characters, by the texts
  std::vector<std::pair<int32_t, int32_t>> merges;  // of ids, the first merges first
  std::vector<int32_t> merged;                      // what each becomes
  bool ignore_merges = false;  // a word that is in the vocabulary is not put together from parts
  bool is_byte_level = true;   // symbols are bytes; otherwise characters:
  bool byte_fallback = false;  // what is in no token is its bytes, <0x41>
  bool fuse_unknown = false;   // unknown characters side by side are one token
  int32_t unknown_id = -1;
  bpe::Normalizer normalizer;
  bpe::PreTokenizer pre_tokenizer;
  std::optional<bpe::SplitPattern::Kind> pattern;  // that the pre-tokenizer is, and no more
  std::optional<bpe::Decoder> decoder;             // none: bytes, as they are
  std::vector<AddedToken> added;
  int32_t bos_id = -1;  // what the template puts before a text
  int32_t end_id = -1;  // and behind it
  int32_t num_ids = 0;
  int32_t num_pieces = 0;  // of the vocabulary, without added tokens
  std::unordered_map<std::string, int32_t>
      unspelled;  // pieces of a vocabulary of bytes that are none

  // The id of a piece as the file spells it; -1: there is none.
  int32_t spelled_id(const std::string& text) const;
};

// The id that `tokenizers` gives the next added token.
int32_t next_added_id(const ByteLevelModel& model, const std::string& text);

// Throws Error{kCorrupt | kUnsupported} that begins with `where`.
ByteLevelModel parse_byte_level_model(const Json& json, const std::string& where);

}  // namespace skein
