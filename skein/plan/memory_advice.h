// What would make a run fit: other configurations, planned again, with the bytes that they take.
//
// Tried    one setting at a time: recomputation, what can be offloaded, smaller micro-batches,
//          ZeRO, other degrees and fewer workers where they hold copies, smaller moments, lower
//          precision; then all of them together, in this order, until it fits; and more nodes
// Exact    what is said to fit was planned in full; the rest is looked at by sketches
//          (skein/plan/plan_sketch.h)
// Cost     some ten sketches, and a plan for each line that is said
#pragma once

#include <string>
#include <vector>

#include "skein/base/json.h"
#include "skein/plan/plan.h"

namespace skein {

struct MemoryAdvice {
  struct Change {
    std::vector<std::string> settings;  // as --set takes them; "--ranks 16"
    std::string price;                  // what else changes
    int64_t needed_bytes = 0;           // of the memory that was short
    int64_t spare_bytes = 0;            // of the memory that then has the least
    int64_t ranks = 1;                  // that these are the needs of
  };
  std::vector<Change> fits;        // each alone, or the first that do together; empty: none does
  std::vector<Change> more_nodes;  // at most one
  Change smallest;                 // where nothing fits: all of them
};

// Of a plan that does not fit.
MemoryAdvice advise(const PlanRequest& request, const Plan& plan);

std::string advice_text(const MemoryAdvice& advice, const Plan& plan);
// The same in a sentence.
std::string advice_line(const MemoryAdvice& advice);
OrderedJson advice_to_json(const MemoryAdvice& advice);

}  // namespace skein
