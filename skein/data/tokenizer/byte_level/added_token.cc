#include "skein/data/tokenizer/byte_level/added_token.h"

#include <fmt/format.h>

namespace skein {

AddedToken parse_added_token(const Json& json, const TokenizerJson& reader) {
  AddedToken token;
  token.text = reader.text_of(json, "content");
  token.special = reader.flag_of(json, "special");
  token.normalized = reader.flag_of(json, "normalized", !token.special);
  token.lstrip = reader.flag_of(json, "lstrip");
  token.rstrip = reader.flag_of(json, "rstrip");
  token.single_word = reader.flag_of(json, "single_word");
  return token;
}

std::string text_to_hash(const AddedToken& token) {
  return fmt::format("\nadded {} {} {} {}{}{} {}", token.id, token.special, token.normalized,
                     token.lstrip, token.rstrip, token.single_word, token.text);
}

}  // namespace skein
