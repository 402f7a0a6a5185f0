// How a tokenizer.json makes a text of tokens: steps in order, each over all tokens.
//
// Source  https://github.com/huggingface/tokenizers: tokenizers/src/decoders
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "skein/bpe/steps/normalizer.h"
#include "skein/bpe/steps/pre_tokenizer.h"

namespace skein::bpe {

struct DecodeBytes {};     // spelled bytes to a text
struct DecodeFallback {};  // <0x41> to bytes, and these to a text
struct DecodeFuse {};      // one token of all
struct DecodeStrip {
  std::string content;  // a character
  size_t start = 0, stop = 0;
};

using DecoderStep =
    std::variant<DecodeBytes, DecodeFallback, DecodeFuse, DecodeStrip, ReplaceStep, MetaspaceStep>;

class Decoder {
 public:
  std::vector<DecoderStep> steps;
  bool joins_with_spaces = true;  // there is none: a space between tokens

  std::string apply(std::vector<std::string> tokens) const;
};

// The byte of "<0x41>"; -1: another text.
int byte_of_fallback(std::string_view token);

}  // namespace skein::bpe
