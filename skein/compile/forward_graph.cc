#include "skein/compile/forward_graph.h"

#include <vector>

#include "skein/passes/fuse_residual.h"
#include "skein/passes/pass.h"
#include "skein/passes/simplify.h"

namespace skein {

Graph forward_graph(const DecoderConfig& model, const DecoderOptions& options, const Mesh& mesh,
                    const ShardPlan& plan) {
  Graph graph(mesh);
  const std::vector<Pass> passes = {
      {"build_decoder", "writes the forward pass down, over whole tensors",
       [&](Graph& g) { build_decoder(g, model, options); }},
      {"shard", "places tensors on the ranks; says what moves",
       [&](Graph& g) { g = shard(g, plan); }, mesh.num_ranks() > 1},
      {"simplify", "drops what one rank has not to do", simplify},
      {"fuse_residual", "has norms add what they follow", fuse_residual},
  };
  run_passes(passes, graph);
  return graph;
}

}  // namespace skein
