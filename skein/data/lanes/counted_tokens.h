// Which tokens of a text count for the loss, of those that a tokenizer gives: those of which a byte
// lies in a span. So has transformers it (return_assistant_tokens_mask). The tokens are those of
// the whole text, as where all of them count.
//
// How    The tokens are laid along the text (token_ends.h). Where a tokenizer changes the text, so
//        that its tokens do not spell it, the tokens before a border are found by encoding what
//        lies between it and the border before. Where that gives other tokens than the whole text
//        has there (a token straddles the border, or the tokenizer puts a space before what it is
//        given), all of the text before the border is encoded: what both have in common lies before
//        it, and the next token is taken to straddle it, which where a tokenizer looks ahead counts
//        tokens before the border as well.
// Cost   decoding each different token; of a text that is changed up to encoding it once for each
//        border
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "skein/data/corpus/corpus.h"

namespace skein {

class Tokenizer;
enum class SpecialTokens;

// A flag for each of `ids`, the tokens of encode_as(special, text): 1 where it counts. `spans` are
// in order.
std::vector<uint8_t> counted_tokens(const Tokenizer& tokenizer, SpecialTokens special,
                                    std::string_view text, std::span<const int32_t> ids,
                                    std::span<const ByteRange> spans);

}  // namespace skein
