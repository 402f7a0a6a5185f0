// What a model says of one token of a text, given those before it.
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

// Natural logarithms of the model's own probabilities: no temperature, no penalty.
struct TokenScore {
  float logprob = 0;              // of the token
  TokenLogprob best = {};         // the likeliest token in its place
  std::vector<TokenLogprob> top;  // the TextRequest::num_top likeliest ones, likeliest first
};

}  // namespace skein
