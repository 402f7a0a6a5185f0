// What a model answers to the requests of an evaluation, through engines: many at a time, and
// what several begin with is read once.
//
// Answers   of a continuation or a whole text the sum of its tokens' log-probabilities, and whether
//           each is the likeliest in its place; of a prompt a new text, which ends before the first
//           stop text, at the end-of-text token, or when it has max_new_tokens
// Bits      on CPUs those of a request alone (engine.h)
// Errors    those of TextEncoder and TextEngine
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"
#include "skein/evaluate/encode/text_encoder.h"
#include "skein/evaluate/results/document_answers.h"
#include "skein/infer/engine_replicas.h"

namespace skein {

struct TextGeneration {
  int64_t max_new_tokens = 256;
  std::vector<std::string> stop;
  std::vector<int64_t> eos_ids;
  SamplingOptions sampling;
};

// Called after each step: requests that have an answer.
using AnswerProgress = std::function<void(int64_t num_done)>;

class Answerer {
 public:
  Answerer(EngineReplicas& engines, TextEncoder& encoder, const Tokenizer& tokenizer)
      : engines_(engines), encoder_(encoder), tokenizer_(tokenizer) {}

  struct Pair {
    std::string_view context, continuation;
  };
  std::vector<ScoredAnswer> score(std::span<const Pair> pairs, const AnswerProgress& progress);
  // Whole texts; is_greedy is not known and false.
  std::vector<ScoredAnswer> score_whole(std::span<const std::string_view> texts,
                                        const AnswerProgress& progress);
  std::vector<std::string> generate(std::span<const std::string_view> prompts,
                                    const TextGeneration& generation,
                                    const AnswerProgress& progress);

 private:
  void run(const AnswerProgress& progress);
  void add_scored(EncodedText text, ScoredAnswer& answer);

  EngineReplicas& engines_;
  TextEncoder& encoder_;
  const Tokenizer& tokenizer_;
  std::vector<TextRequest> requests_;  // of the call under way
  std::atomic<int64_t> num_done_ = 0;
};

}  // namespace skein
