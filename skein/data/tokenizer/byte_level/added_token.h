// A token that was added to a vocabulary: tokenizer.json and tokenizer_config.json list them.
#pragma once

#include <cstdint>
#include <string>

#include "skein/data/tokenizer/byte_level/json_members.h"

namespace skein {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;      // text that spells it is ordinary text
  bool normalized = false;   // looked for after normalization
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool single_word = false;  // not beside letters and digits
};

// Its text and flags; `json` has them as members. The id is another's to say.
AddedToken parse_added_token(const Json& json, const TokenizerJson& reader);

// A line for a hash of what decides the ids.
std::string text_to_hash(const AddedToken& token);

}  // namespace skein
