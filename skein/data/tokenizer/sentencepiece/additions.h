// What a folder adds to its tokenizer.model: tokens, and where a space is put before them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/data/tokenizer/byte_level/added_token.h"
#include "skein/data/tokenizer/folder/folder.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"

namespace skein {

// Before which parts of a text, cut at added tokens, the model's space is put.
enum class SpacePrefix {
  kNormalized,  // all, before tokens with `normalized` are looked for: a normalizer "Prepend"
  kEach,        // all that do not begin with a space: a pre-tokenizer "Metaspace"
  kFirst        // one that begins the text: the same with prepend_scheme "first"
};

struct AddedSentencePieces {
  std::vector<AddedToken> tokens;  // by id; without pieces that the model alone treats alike
  bool add_dummy_prefix = true;    // whether a space is put before a text at all
  SpacePrefix prefix = SpacePrefix::kNormalized;
  int32_t num_ids = 0;  // of the model and the tokens
};

// Throws Error{kInvalid} where tokenizer.json has other pieces than the model, or two files give
// one id or one text to different tokens.
AddedSentencePieces added_sentencepieces(const SentencePieceModel& model, const std::string& name,
                                         std::span<const fs::path> files,
                                         const TokenizerFolder& folder);

}  // namespace skein
