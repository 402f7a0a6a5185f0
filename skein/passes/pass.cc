#include "skein/passes/pass.h"

namespace skein {

void run_passes(std::span<const Pass> passes, Graph& graph, const AfterPass& after, bool verified) {
  for (const Pass& pass : passes) {
    if (!pass.enabled) continue;
    pass.run(graph);
    if (verified) verify(graph, pass.name, pass.leaves);
    if (after) after(pass, graph);
  }
}

}  // namespace skein
