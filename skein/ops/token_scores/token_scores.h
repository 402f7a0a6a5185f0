// What an evaluation asks of a row of logits: the log-probability of a label, and the likeliest
// token with its own.
//
// Formula       with m = max_v l[t,v]:  best[t] = the smallest v with l[t,v] = m
//               best_logprob[t] = -log(sum_v exp(l[t,v] - m))
//               logprob[t] = l[t,label] - m + best_logprob[t]; 0 if label is outside [0, V). So the
//               two are the same bits where the label is the likeliest
// Shapes        logits [T, V] f32; labels [T] i32; logprob, best_logprob [T] f32; best [T] i32
// Accumulation  fp32. The bits of a row do not depend on the other rows of the call
// Backward      none
// Cost          10 flops a logit
// Placement     S0 S0 -> S0 S0 S0
// Errors        Error{kInvalid} naming the operands that do not fit
#pragma once

#include <string>

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kTokenScores;  // (logits, labels) -> logprob, best, best_logprob

struct TokenScores {
  ValueId logprob = kNoValue;
  ValueId best = kNoValue;
  ValueId best_logprob = kNoValue;
};

TokenScores token_scores(Graph& graph, ValueId logits, ValueId labels,
                         const std::string& logprob_name, const std::string& best_name,
                         const std::string& best_logprob_name);

}  // namespace skein
