// Which tokens begin and end a text, from all files of a tokenizer's folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/tokenizer/folder/folder.h"

namespace skein {

struct TokenLookup {
  std::string name;                                // of the tokenizer, for errors
  std::function<int32_t(std::string_view)> id_of;  // of a token's text; -1: there is none
  std::function<bool(int64_t)> has_token;          // whether an id has a token
  int32_t own_bos = -1, own_eos = -1;              // of the vocabulary or its template
};

struct TextEnds {
  int32_t bos = -1, eos = -1;
  int32_t mask = -1;               // stands for a token that a model must find
  std::vector<std::string> notes;  // for people: what was taken from where
};

// Throws Error{kInvalid} naming the file where a token that it names is not in the vocabulary.
TextEnds text_ends(const TokenizerFolder& folder, const TokenLookup& lookup);

}  // namespace skein
