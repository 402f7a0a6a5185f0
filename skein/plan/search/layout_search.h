// `skein plan --search`: layouts for a number of ranks, ordered by predicted tokens per second.
//
// Layouts  every tensor and pipeline degree that divides the ranks and suits model and batch, up to
//          8 virtual stages, context degrees of 1, 2, 4 and 8, with micro_sequences of 1, 2, 4 and
//          8, ZeRO 1 to 3 and every recompute policy, in pairs of micro-batches too where layers
//          wait for other ranks; the data degree follows. Sequence parallelism is on, since it
//          sends as much and stores less. reduction_width and overlap stay as configured.
// Method   best first. Each layout has a lower bound on its time and its bytes, which is made
//          tighter in three steps where it is the least of all (skein/plan/search/layout_bounds.h):
//          from sizes alone, from the layers' own programs, from a sketch (skein/plan/sketch.h).
//          The least of all that was sketched is planned in full. The search is complete when no
//          bound is below the times of the best that were.
// Anytime  from its first seconds on it has a layout that was planned in full, since the best
//          sketch is planned early, whatever is bounded below it. Stopped, it gives the best ones
//          that were planned in full.
// Threads  one per core; progress is told on the thread that calls
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/plan/plan.h"

namespace skein {

struct SearchResult {
  struct FoundLayout {
    Config config;
    Plan plan;
    int64_t order = 0;  // of those that are equally fast
  };
  std::vector<FoundLayout> best;  // planned in full; only layouts that fit, fastest first
  struct Refused {
    int64_t count = 0;
    std::string example;
  };
  std::map<std::string, Refused> refused;  // by reason
  // The configuration as it is, to compare with; nothing: it cannot be laid out, and why.
  std::optional<Plan> own;
  std::string why_no_own;
  int64_t num_layouts = 0;  // considered
  int64_t num_sketched = 0;
  int64_t num_planned = 0;  // in full
  int64_t num_slower = 0;   // neither: their lower bounds are slower than the best
  int64_t num_left = 0;     // not decided before the search was stopped
  double seconds = 0;

  bool is_complete() const { return num_left == 0; }
};

struct SearchProgress {
  int64_t num_layouts = 0, num_sketched = 0, num_planned = 0;
  double seconds = 0;
  double best_seconds = 0;  // of a step; 0: none was planned yet
  std::string best;         // layout_text
};

struct LayoutSearchOptions {
  size_t num_best = 10;
  double seconds = std::numeric_limits<double>::infinity();
  // Plans every layout in full, to compare with.
  bool exhaustive = false;
  // Called some ten times a second. False stops the search.
  std::function<bool(const SearchProgress&)> on_progress;
};

SearchResult search_layouts(const PlanRequest& request, const LayoutSearchOptions& options = {});

// The layout in a few words.
std::string layout_text(const Config& config);

// What a layout sets, as --set takes it: "parallel.tensor=2". All of it, or what differs from
// `than`.
std::vector<std::string> layout_settings(const SearchResult::FoundLayout& found);
std::vector<std::string> layout_settings(const SearchResult::FoundLayout& found,
                                         const Config& than);

// How many layouts were planned in full and sketched, and whether that was all.
std::string search_summary(const SearchResult& result);
OrderedJson search_to_json(const SearchResult& result);
std::string search_to_text(const SearchResult& result, const PlanRequest& request);

}  // namespace skein
