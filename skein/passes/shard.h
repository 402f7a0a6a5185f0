// From plain mathematics to placed mathematics: gives every graph input its placements, then goes
// through the nodes in order and redistributes their activations wherever an op has no rule for
// what arrives. The first pass.
//
// Choice   per node and axis, the cheapest combination of placements of its activations that the op
//          accepts (bytes on the wire; on equal terms, what was there first); parameters stay where
//          they are. An op may write itself otherwise over what arrives (`expand`). A value that
//          several nodes need elsewhere moves once.
// Sequence parallelism is not a case here: norms and adds take rows that are split, and a
//          reduce-scatter is cheaper than an all-reduce. `whole_rows` forbids it.
// Errors   Error{kInvalid} from the op, where no redistribution makes a node legal
// Source   Shoeybi et al., arXiv:1909.08053; Korthikanti et al., arXiv:2205.05198
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "skein/ir/graph.h"

namespace skein {

struct ShardPlan {
  // Of graph inputs; and of values that nodes produce, where they must be placed so for their
  // users. Nothing: inputs are Replicated, values as their op leaves them.
  std::function<std::optional<Placements>(const Value&)> place;
  // Axes over which the pass may not choose to split rows of activations.
  std::set<std::string> whole_rows;
};

Graph shard(const Graph& graph, const ShardPlan& plan);

}  // namespace skein
