// `skein plan --search`: layouts for a number of ranks, ordered by predicted tokens per second.
//
// Layouts  every tensor and pipeline degree that divides the ranks and suits model and batch, up to
//          8 virtual stages, context degrees of 1, 2, 4 and 8, with micro_sequences of 1, 2, 4 and
//          8, ZeRO 1 to 3 and every recompute policy, in pairs of micro-batches too where layers
//          wait for other ranks; the data degree follows. Sequence parallelism is on, since it
//          sends as much and stores less. reduction_width and overlap stay as configured.
// Method   branch and bound. For each layout: a lower bound on its time (its arithmetic, the
//          pipeline's idle share, its tensor collectives) and on its bytes (weights, gradient sums,
//          optimizer, activations). Layouts that can fit are sketched (skein/plan/plan_sketch.h) in
//          the order of these times, until no remaining layout can be among the best; the best are
//          then planned in full.
// Threads  one per core
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/plan/plan.h"

namespace skein {

struct SearchResult {
  struct Found {
    Config config;
    Plan plan;
  };
  std::vector<Found> best;  // only layouts that fit, fastest first
  struct Refused {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, Refused> refused;  // by reason
  int64_t num_layouts = 0;                 // considered
  int64_t num_planned = 0;
  int64_t num_slower = 0;  // not planned: their lower bounds are slower than the best
  double seconds = 0;
};

SearchResult search_layouts(const PlanRequest& request, size_t num_best = 10);

// The settings of a layout, as --set takes them.
std::string layout_text(const Config& config);

OrderedJson search_to_json(const SearchResult& result);
std::string search_to_text(const SearchResult& result, const PlanRequest& request);

}  // namespace skein
