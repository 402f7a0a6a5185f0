// Advice on what would make a run fit: other configurations, planned again, with the bytes that
// they need.
//
// Tried    one setting at a time: recomputation, offloading, smaller micro-batches, ZeRO, other
//          degrees and fewer workers where these hold copies, smaller moments, lower precision;
//          then all of them together, in this order, until the run fits; and more nodes
// Exact    a configuration that is said to fit was planned in full; the others are sketched
//          (skein/plan/sketch.h)
// Cost     some ten sketches, and a plan for each line of advice
#pragma once

#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/plan/plan.h"

namespace skein {

struct MemoryAdvice {
  struct Proposal {
    std::vector<std::string> settings;  // as --set takes them, or "--ranks 16"
    std::string price;                  // the drawback, for people
    int64_t needed_bytes = 0;           // of the memory that did not suffice before
    int64_t spare_bytes = 0;            // of the memory with the least to spare then
    int64_t ranks = 1;                  // the ranks that needed_bytes counts
  };
  std::vector<Proposal> fits;        // each fits alone, else one combination; empty: none
  std::vector<Proposal> more_nodes;  // at most one
  Proposal smallest;                 // where nothing fits: the least that was reached
};

// Advice for a plan that does not fit.
MemoryAdvice advise(const PlanRequest& request, const Plan& plan);

std::string advice_text(const MemoryAdvice& advice, const Plan& plan);
// The same in one sentence.
std::string advice_line(const MemoryAdvice& advice);
OrderedJson advice_to_json(const MemoryAdvice& advice);

}  // namespace skein
