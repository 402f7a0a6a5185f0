// What a model answered to the requests of a document.
#pragma once

#include <string>
#include <vector>

#include "skein/evaluate/requests/requests.h"

namespace skein {

// To a continuation, or a whole text.
struct ScoredAnswer {
  double logprob = 0;     // the sum of its tokens' natural log-probabilities
  bool is_greedy = true;  // whether each token is the likeliest in its place
};

struct DocumentAnswers {
  DocumentRequests asked;
  std::vector<ScoredAnswer> scored;             // of each request, but those that generate
  std::vector<std::vector<std::string>> texts;  // of each request that generates, its samples
};

}  // namespace skein
