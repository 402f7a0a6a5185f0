// The normalizer, pre-tokenizer and decoder of a tokenizer.json: what each does, or an error that
// names what is not read.
//
// Source  https://github.com/huggingface/tokenizers, tokenizers/src
#pragma once

#include "skein/bpe/steps/decode_steps.h"
#include "skein/bpe/steps/normalizer.h"
#include "skein/bpe/steps/pre_tokenizer.h"
#include "skein/data/tokenizer/byte_level/json_members.h"

namespace skein {

bpe::Normalizer parse_normalizer(const Json& json, const TokenizerJson& reader);
bpe::PreTokenizer parse_pre_tokenizer(const Json& json, const TokenizerJson& reader);
bpe::Decoder parse_decoder(const Json& json, const TokenizerJson& reader);

}  // namespace skein
