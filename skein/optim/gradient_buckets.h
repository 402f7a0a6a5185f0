// The gradient sums of a differentiated graph, and how they become sums over all ranks: in buckets
// (optim/update.h says how large), each one collective an axis. The scratch of a sum is bounded by
// the largest bucket.
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

struct TrainedParameter {
  ValueId parameter = kNoValue;
  // After the last micro-batch: one for each scope that uses the parameter, first its own.
  std::vector<ValueId> sums;
  ValueId gradient = kNoValue;  // over all ranks: whole, or this rank's range
};
using Bucket = std::vector<TrainedParameter*>;

// Of the rank's part of the gradient, as fp32, before it is divided into ranges.
int64_t whole_gradient_bytes(const Graph& graph, const TrainedParameter& one);

// Those that have a gradient, in the order of the graph.
std::vector<TrainedParameter> trained_parameters(const Graph& graph);

// Consecutive parameters, each in one bucket, of at most so many bytes unless it is one parameter.
std::vector<Bucket> make_buckets(const Graph& graph, std::vector<TrainedParameter>& parameters,
                                 int64_t most_bytes);

// Sums the bucket's gradients over data, context and tensor axes, to ranges over `scattered`: then
// the memory of the full sums is zero again, ready for the next step.
void sum_over_ranks(Graph& graph, const Bucket& bucket, const std::vector<int>& scattered);

// What the memory of each value holds in the end, following the chains of in-place ops.
std::vector<ValueId> latest_values(const Graph& graph);

// Replaces the values by what they are when placed so, all in one collective.
void redistribute_each(Graph& graph, const std::vector<ValueId*>& values, int axis, Placement to);

}  // namespace skein
