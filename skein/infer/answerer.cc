#include "skein/infer/answerer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "skein/infer/text_stream.h"

namespace skein {

void Answerer::run(const AnswerProgress& progress) {
  num_done_ = 0;
  engines_.run(std::exchange(requests_, {}), [&] {
    if (progress) progress(num_done_);
  });
}

// Sums of few floats, in double: the order of steps does not matter.
void Answerer::add_scored(EncodedText text, ScoredAnswer& answer) {
  TextRequest request;
  const std::vector<int32_t> scored(text.tokens.begin() + text.score_from, text.tokens.end());
  request.tokens = std::move(text.tokens);
  request.score_from = text.score_from;
  request.on_scores = [&answer, scored](std::span<const TokenScore> scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      answer.logprob += scores[i].logprob;
      answer.is_greedy = answer.is_greedy && scores[i].best.token == scored[i];
    }
  };
  request.on_end = [this] { ++num_done_; };
  requests_.push_back(std::move(request));
}

std::vector<ScoredAnswer> Answerer::score(std::span<const Pair> pairs,
                                          const AnswerProgress& progress) {
  std::vector<ScoredAnswer> answers(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    add_scored(encoder_.pair(pairs[i].context, pairs[i].continuation), answers[i]);
  }
  run(progress);
  return answers;
}

std::vector<ScoredAnswer> Answerer::score_whole(std::span<const std::string_view> texts,
                                                const AnswerProgress& progress) {
  std::vector<std::vector<ScoredAnswer>> pieces(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<EncodedText> encoded = encoder_.rolling(texts[i]);
    pieces[i].resize(encoded.size());
    for (size_t k = 0; k < encoded.size(); ++k) add_scored(std::move(encoded[k]), pieces[i][k]);
  }
  run(progress);
  std::vector<ScoredAnswer> answers(texts.size(), {.logprob = 0, .is_greedy = false});
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const ScoredAnswer& piece : pieces[i]) answers[i].logprob += piece.logprob;
  }
  return answers;
}

std::vector<std::string> Answerer::generate(std::span<const std::string_view> prompts,
                                            const TextGeneration& generation,
                                            const AnswerProgress& progress) {
  std::vector<std::string> answers(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    TextRequest request;
    request.tokens = encoder_.prompt(prompts[i], generation.max_new_tokens);
    request.max_new_tokens = generation.max_new_tokens;
    request.sampling = generation.sampling;
    // As lm-evaluation-harness does, the new tokens are decoded without those before them.
    const auto stream =
        std::make_shared<TextStream>(tokenizer_, std::vector<int32_t>(), generation.stop);
    request.on_token = [&generation, &answer = answers[i], stream](int32_t token,
                                                                   const TokenScore&) {
      const auto& eos = generation.eos_ids;
      if (std::find(eos.begin(), eos.end(), token) != eos.end()) return false;
      answer += stream->add(token);
      return !stream->is_stopped();
    };
    request.on_end = [this, &answer = answers[i], stream] {
      answer += stream->finish();
      ++num_done_;
    };
    requests_.push_back(std::move(request));
  }
  run(progress);
  return answers;
}

}  // namespace skein
