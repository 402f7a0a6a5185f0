// Places an unplaced graph: gives every graph input its placements, then goes through the nodes in
// order and redistributes activations wherever an op has no rule for its inputs' placements. The
// first pass.
//
// Choice   per node and axis, the cheapest placements of its activations that the op accepts (bytes
//          on the wire; on a tie the present placements); parameters stay where they are. An op may
//          replace itself by nodes that fit its inputs (`expand`). A value that several nodes need
//          in another placement is redistributed once.
// Sequence parallelism needs no special case: norms and adds accept split rows, and a
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
  // The placements of graph inputs, and of values whose users need a certain placement. Nothing:
  // inputs are Replicated, other values stay as their op leaves them.
  std::function<std::optional<Placements>(const Value&)> place;
  // Axes over which the pass may not choose to split rows of activations.
  std::set<std::string> whole_rows;
};

Graph shard(const Graph& graph, const ShardPlan& plan);

}  // namespace skein
