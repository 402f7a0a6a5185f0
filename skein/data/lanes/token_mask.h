// Masked language modelling: which tokens of a row a model must find, and what it reads in their
// places.
//
// Formula  each token of a row, or with whole_words each word, is chosen with `probability`. In the
//          place of a chosen token stands the mask token (80 of 100), any token (10), or the token
//          itself (10). Its label is the token; no other token has a label
// Draws    of (seed, row of the run, position in it) and of nothing else, so that a row is masked
//          alike in every layout and after every resume, and differently in every epoch
// Spared   special tokens, and what fills the row behind the end of a lane
// Source   Devlin et al., "BERT", arXiv:1810.04805, 3.1; DataCollatorForLanguageModeling of
//          transformers
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "skein/data/lanes/batch.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

struct MaskOptions {
  double probability = 0;    // 0: the label of a token is the next one, and nothing is masked
  bool whole_words = false;  // a word is a token that begins one, and those that follow it
  std::string token;         // empty: the mask_token of the tokenizer's files
};

class TokenMask {
 public:
  // `vocab_size`: of the model. Throws Error{kUsage} where there is no mask token.
  TokenMask(const Tokenizer& tokenizer, const MaskOptions& options, int64_t vocab_size,
            uint64_t seed);

  // Of row number `row` of the run, which `segments` make up.
  void apply(int64_t row, std::span<const RowSegment> segments, std::span<int32_t> tokens,
             std::span<int32_t> labels) const;

  int32_t mask_id() const { return mask_id_; }

 private:
  int32_t seen(int32_t token, const std::array<uint32_t, 4>& words) const;

  double probability_;
  bool whole_words_;
  uint64_t seed_;
  int32_t mask_id_;
  uint64_t num_tokens_;                            // any token is one of these
  std::vector<uint8_t> is_special_, begins_word_;  // by token
};

}  // namespace skein
