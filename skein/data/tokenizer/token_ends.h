// Where each token of a text ends in it, in bytes: what the tokens say, laid along the text.
//
// How      a token says what it adds to a token before it (decode()). Bytes of a part of a
//          character decode to U+FFFD, so that several lengths may fit: what the next tokens say
//          decides. A blank that a tokenizer puts before a text takes no bytes of it. Special
//          tokens, which decode to nothing, take what spells them, and the white space that they
//          swallow.
// Cost     each different token is decoded once
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace skein {

class Tokenizer;
enum class SpecialTokens;

// `ids`: the tokens of encode_as(special, text). Nothing where they do not spell the text, because
// the tokenizer changes it (normalization).
std::optional<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, SpecialTokens special,
                                              std::string_view text, std::span<const int32_t> ids);

}  // namespace skein
