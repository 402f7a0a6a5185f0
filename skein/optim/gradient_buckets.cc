#include "skein/optim/gradient_buckets.h"

#include <algorithm>
#include <map>
#include <set>

#include "skein/ir/gradient_name.h"
#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/optim/update.h"

namespace skein {
namespace {

bool is_pending(const Graph& graph, ValueId id, int axis) {
  return graph.type(id).placements[axis].is_partial();
}

}  // namespace

int64_t whole_gradient_bytes(const Graph& graph, const TrainedParameter& one) {
  TensorType type = graph.type(one.sums.front());
  std::replace(type.placements.begin(), type.placements.end(), Placement::flat(),
               Placement::replicated());
  return type.local_bytes(graph.mesh());
}

std::vector<ValueId> latest_values(const Graph& graph) {
  std::vector<ValueId> latest(graph.values().size());
  for (size_t id = 0; id < latest.size(); ++id) latest[id] = static_cast<ValueId>(id);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->layout == nullptr) continue;
    for (const Alias& alias : node->op->layout(graph.call(*node)).aliases) {
      const ValueId input = node->inputs[alias.input];
      if (alias.in_place && input != kNoValue) latest[input] = latest[node->outputs[alias.output]];
    }
  }
  return latest;
}

std::vector<TrainedParameter> trained_parameters(const Graph& graph) {
  const std::vector<ValueId> latest = latest_values(graph);
  std::map<std::string, std::vector<ValueId>> sums;  // by parameter
  for (const Value& value : graph.values()) {
    if (value.role != Role::kGradient) continue;
    const GradientName name = parse_gradient_name(value.name);
    std::vector<ValueId>& list = sums[std::string(name.parameter)];
    list.insert(name.scope.empty() ? list.begin() : list.end(), latest[graph.find(value.name)]);
  }
  std::vector<TrainedParameter> result;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    if (graph.values()[id].role != Role::kParameter) continue;
    const auto found = sums.find(graph.values()[id].name);
    if (found != sums.end()) {
      result.push_back({.parameter = static_cast<ValueId>(id), .sums = found->second});
    }
  }
  return result;
}

std::vector<Bucket> make_buckets(const Graph& graph, std::vector<TrainedParameter>& parameters,
                                 int64_t most_bytes) {
  std::vector<Bucket> all;
  int64_t bytes = 0;
  for (TrainedParameter& one : parameters) {
    const int64_t of_one = whole_gradient_bytes(graph, one);
    if (all.empty() || bytes + of_one > most_bytes) {
      all.emplace_back();
      bytes = 0;
    }
    all.back().push_back(&one);
    bytes += of_one;
  }
  return all;
}

void sum_over_ranks(Graph& graph, const Bucket& bucket, const std::vector<int>& scattered) {
  std::set<const ValueId*> ranges;
  // From the outer axes in: tensor ranks add ranges, where there are some, which is less to move.
  for (int axis = 0; axis < graph.mesh().num_axes(); ++axis) {
    const bool scatters = std::find(scattered.begin(), scattered.end(), axis) != scattered.end();
    std::vector<ValueId*> pending;
    std::vector<ValueId> full;
    for (TrainedParameter* one : bucket) {
      for (ValueId& sum : one->sums) {
        if (!is_pending(graph, sum, axis)) continue;
        pending.push_back(&sum);
        if (scatters && ranges.insert(&sum).second) full.push_back(sum);
      }
    }
    redistribute_each(graph, pending, axis, scatters ? Placement::flat() : Placement::replicated());
    if (!full.empty()) fill_zero(graph, full);
  }
}

void redistribute_each(Graph& graph, const std::vector<ValueId*>& values, int axis, Placement to) {
  if (values.empty()) return;
  std::vector<ValueId> ids;
  for (const ValueId* value : values) ids.push_back(*value);
  const auto results = redistribute(graph, ids, graph.mesh().axis(axis).name, to);
  for (size_t i = 0; i < results.size(); ++i) *values[i] = results[i];
}

}  // namespace skein
