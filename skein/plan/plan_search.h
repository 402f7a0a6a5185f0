// `skein plan --search`: the layouts of a number of ranks, ranked by predicted tokens a second.
//
// Layouts  every tensor and pipeline degree that factors the ranks and that model and batch take,
//          up to 8 virtual stages, context degrees of 1, 2, 4 and 8, with micro_sequences of 1, 2,
//          4 and 8, ZeRO 1 to 3 and every recompute policy. Sequence parallelism is on: it sends as
//          much and keeps less. reduction_width stays as it is; data is what is left.
// Method   branch and bound. Each layout has a time that it cannot beat (its arithmetic, its
//          pipeline's idle share, its tensor collectives) and bytes that it needs at least
//          (weights, gradient sums, optimizer). What can fit is sketched
//          (skein/plan/plan_sketch.h) in the order of those times, until no layout left can be
//          among the best; the best are then planned in full.
// Threads  as many as there are cores
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
  std::vector<Found> best;  // that fit, fastest first
  struct Refused {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, Refused> refused;  // by reason
  int64_t num_layouts = 0;                 // that were looked at
  int64_t num_planned = 0;
  int64_t num_slower = 0;  // cannot be among the best, whatever their plan says
  double seconds = 0;
};

SearchResult search_layouts(const PlanRequest& request, size_t num_best = 10);

// The settings of a layout, as --set takes them.
std::string layout_text(const Config& config);

OrderedJson search_to_json(const SearchResult& result);
std::string search_to_text(const SearchResult& result, const PlanRequest& request);

}  // namespace skein
