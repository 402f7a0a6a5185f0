// A tokenizer.json with byte-level BPE (GPT-2, Llama 3, Qwen 2 and 3), parsed and checked.
//
// Read       model "BPE" with vocab, merges and ignore_merges; the normalizer NFC; the
//            pre-tokenizers ByteLevel and Split by a pattern of bpe/split_pattern.h; added tokens;
//            from a template the token that begins a text
// Refused    anything else: it would give other ids, so its name is said
// Source     https://github.com/huggingface/tokenizers, tokenizers/src
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/base/json.h"
#include "skein/bpe/split_pattern.h"
#include "skein/bpe/vocabulary.h"

namespace skein {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;     // text that spells it is ordinary text
  bool normalized = false;  // looked for after normalization
};

struct ByteLevelModel {
  bpe::Vocabulary vocabulary;                       // by the bytes themselves
  std::vector<std::pair<int32_t, int32_t>> merges;  // of ids, the first merges first
  std::vector<int32_t> merged;                      // what each becomes
  bool ignore_merges = false;  // a word that is in the vocabulary is not put together from parts
  bool nfc = false;
  bpe::SplitPattern::Kind pattern = bpe::SplitPattern::Kind::kGpt2;
  std::vector<AddedToken> added;
  int32_t bos_id = -1;  // what the template puts before a text
  int32_t end_id = -1;  // and behind it
  int32_t num_ids = 0;
};

// Throws Error{kCorrupt | kUnsupported} that begins with `where`.
ByteLevelModel parse_byte_level_model(const Json& json, const std::string& where);

}  // namespace skein
