// Draws the next token of a text.
//
// Random   Philox keyed by the seed and the place of the new token in the text: the same text for a
//          seed, whatever else is in the batch
#pragma once

#include <cstdint>
#include <span>

namespace skein {

struct SamplingOptions {
  double temperature = 0;  // 0: always the likeliest token
  double top_p = 1;
  int64_t top_k = 0;  // draws from that many of the likeliest tokens; 0: from all
  uint64_t seed = 1;
  // Ids that have no token, rows that only pad the vocabulary: never drawn.
  std::span<const int32_t> never = {};
};

// The token for place `position`; `logits` are changed where `never` says. `best`: the index of the
// largest.
int32_t next_token(std::span<float> logits, int32_t best, const SamplingOptions& options,
                   int64_t position);

// Draws from softmax(logits / temperature) cut to the smallest set of tokens whose probabilities
// reach top_p, of the top_k likeliest (0: of all); `uniform` in (0, 1].
int32_t sample_token(std::span<const float> logits, double temperature, double top_p, float uniform,
                     int64_t top_k = 0);

}  // namespace skein
