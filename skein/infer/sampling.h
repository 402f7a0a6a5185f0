// Draws the next token of a text.
//
// Order    bias, penalties, temperature, top_k, top_p, min_p: each sees what those before it left
// Random   Philox keyed by the seed and the place of the new token in the text: the same text for a
//          seed, whatever else is in the batch
// Source   repetition_penalty and min_p as transformers has them; presence_penalty,
//          frequency_penalty and bias as OpenAI's API describes them
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace skein {

struct SamplingOptions {
  double temperature = 0;  // 0: always the likeliest token
  double top_p = 1;
  int64_t top_k = 0;  // draws from that many of the likeliest tokens; 0: from all
  double min_p = 0;   // drops tokens of less than this share of the likeliest one's probability
  // Of each token that the text has, its beginning included: divides a positive logit, multiplies
  // a negative one. 1: none.
  double repetition_penalty = 1;
  // Of each new token: taken from its logit once, and once for each time that it was drawn.
  double presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> bias = {};  // added to the logits of these tokens
  uint64_t seed = 1;
  // Ids that have no token, rows that only pad the vocabulary: never drawn.
  std::span<const int32_t> never = {};

  // Whether `best`, the likeliest token by the model's own logits, may not be the one that is
  // taken.
  bool needs_logits(int32_t best) const;
};

// A text that gets a token: `tokens`, of which the first `num_given` were given.
struct SampledText {
  std::span<const int32_t> tokens;
  int64_t num_given = 0;
};

// The next token; changes `logits`.
int32_t next_token(std::span<float> logits, const SamplingOptions& options,
                   const SampledText& text);

// Draws from softmax(logits / temperature) cut to the top_k likeliest tokens (0: all), of these to
// the smallest set whose probabilities reach top_p, and of these to those of at least min_p times
// the largest; `uniform` in (0, 1].
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, float uniform);

}  // namespace skein
