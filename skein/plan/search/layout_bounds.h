// Lower bounds on the time and the memory of a layout, for `skein plan --search`: at first from its
// sizes, then from the programs of its layers.
//
// Seconds  of sizes: a device's least seconds a token, the pipeline's idle share, the tensor
//          collectives that every layout has, the exchange of gradients and weights
//          of layers: forward and backward as the ranks of one stage run them alone, without data
//          ranks; each stage's share of them, and what the pipeline adds before and behind
//          Gradients are summed and weights gathered over data ranks at the rate of the wire, less
//          what computation can hide.
// Bytes    weights, gradient sums, optimizer state, and what the first stage keeps for the
//          micro-batches in flight
// Slack    3 %, since some memory and work are not split among ranks, and stages are not equal
// Threads  of_layers may be called by several at once
#pragma once

#include <array>
#include <map>

#include "skein/plan/search/layout_space.h"
#include "skein/plan/sketch.h"

namespace skein {

// Of the rank with the largest share of the batch.
struct LayoutSizes {
  int64_t micro_batches = 1;    // in a step
  int64_t of_virtual_rank = 1;  // of them
};

class LayoutBounds {
 public:
  struct CostBound {
    double seconds = 0;
    ArenaBytes bytes{};
  };

  LayoutBounds(const PlanRequest& request, SketchCache& sketches);

  CostBound of_sizes(const LayoutChoice& choice, const ParallelLayout& layout) const;
  // Tighter; plans some layers where no layout with such layers was asked for before. Throws what
  // planning them throws.
  CostBound of_layers(const LayoutChoice& choice, const ParallelLayout& layout) const;

 private:
  struct Layers;
  struct Exchange;
  Layers layers_of(const LayoutChoice& choice) const;
  Exchange exchange_of(const LayoutChoice& choice) const;
  ArenaBytes bytes_of(const LayoutChoice& choice, const LayoutSizes& sizes,
                      double kept_a_layer) const;
  double turns(int64_t devices) const;

  const PlanRequest& request_;
  SketchCache& sketches_;
  const Precision precision_;
  const DType moments_;
  const double num_parameters_;
  std::array<double, 3> least_work_{}, least_kept_{};  // a token, by recompute policy
};

}  // namespace skein
