// The graph of a decoder that only runs forward: the passes that its programs share.
#pragma once

#include "skein/ir/graph.h"
#include "skein/model/decoder.h"
#include "skein/passes/parallel/shard.h"

namespace skein {

// Of one rank alone, or of the ranks of `mesh`, on which `plan` places tensors.
Graph forward_graph(const DecoderConfig& model, const DecoderOptions& options,
                    const Mesh& mesh = Mesh(), const ShardPlan& plan = {});

}  // namespace skein
