// The token ids of requests, as lm-evaluation-harness's `hf` model has them.
//
// Pair      spaces at the end of the context belong to the continuation. The context's tokens are
//           those of the context alone; behind them are the tokens of both as one text from that
//           number on
// Beginning the tokenizer's BOS where it adds one and the text does not spell it. An empty context
//           is BOS, else the end-of-text token. (The harness takes for BOS what
//           tokenizer_config.json calls so, and here it is what the tokenizer adds)
// Length    a model of L positions scores L tokens with L before them: of a longer text the first
//           tokens are left out. num_cut() counts such texts
// Errors    Error{kInvalid} for a continuation without tokens, or longer than the model
// Threads   one
// Source    lm-evaluation-harness 0.4.13, models/huggingface.py, api/model.py
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

// A text whose tokens from `score_from` on are scored.
struct EncodedText {
  std::vector<int32_t> tokens;
  int64_t score_from = 0;
};

class TextEncoder {
 public:
  // `max_length`: positions of the model.
  TextEncoder(const Tokenizer& tokenizer, int64_t max_length);

  EncodedText pair(std::string_view context, std::string_view continuation);
  // A text that is scored as a whole, in pieces that the model can hold; none of an empty text.
  std::vector<EncodedText> rolling(std::string_view text) const;
  // A text to continue by up to `max_new_tokens`.
  std::vector<int32_t> prompt(std::string_view context, int64_t max_new_tokens);

  int64_t max_length() const { return max_length_; }
  int64_t num_cut() const { return num_cut_; }

 private:
  const Tokenizer& tokenizer_;
  const int64_t max_length_;
  int32_t prefix_ = 0;  // what stands for an empty context
  int64_t num_cut_ = 0;
};

}  // namespace skein
