// Scoring and generation with a trained model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "skein/runtime/executor.h"
#include "skein/weights/model_source.h"

namespace skein {

// The natural log of each token's probability given those before it; the first entry of each list
// has no context and is NaN.
//
// Computed in fp32 whatever the weights are stored as, so that results can be compared. On a CPU a
// sequence gets the same bits in any list (engine.h). Of one so long that the model's RoPE changes
// with its length, each length has a program of its own, and nothing is kept.
// Errors  kInvalid for an empty list, an id outside the vocabulary or a list longer than
//         max_position_embeddings or sliding_window (text_limit)
std::vector<std::vector<float>> score_tokens(const ModelSource& source, Device& device,
                                             const std::vector<std::vector<int32_t>>& sequences);

struct GenerateOptions {
  int64_t max_tokens = 128;
  double temperature = 0.8;  // 0: always the likeliest token
  double top_p = 0.95;
  int64_t top_k = 0;  // draws from that many of the likeliest tokens; 0: from all
  uint64_t seed = 1;
  // Whether an id has a token. The others, rows that only pad the vocabulary, are never drawn.
  // Empty: all have.
  std::function<bool(int32_t)> has_token;
  std::vector<int64_t> eos_ids;  // that end the text
};

// Continues `prompt` until an end-of-sequence id, max_tokens or text_limit. Each new token is
// passed to `emit` at once.
void generate_tokens(const ModelSource& source, Device& device, std::vector<int32_t> prompt,
                     const GenerateOptions& options, const std::function<void(int32_t)>& emit);

}  // namespace skein
