// Gives every value a place: offsets into arenas whose sizes are known to the byte before anything
// is allocated. The last pass.
//
//   weights, gradients, optimizer, inputs,  one after the other, in the order of the graph
//   rounded
//   activations                             what backward reads of forward, one after the other
//   host activations                        the same, of what `stash` gives; always in host memory
//   workspace                               by lifetime: values that are never alive together share
//                                           memory; behind them the largest scratch of any kernel
//
// Several graphs (training, evaluation) share the persistent values by name. A later graph may use
// the first rows alone of an input or output: programs for fewer tokens.
//
// Cost  O(n^2) in the number of simultaneously planned workspace values
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "skein/ir/program.h"

namespace skein {

// Nodes for the last micro-batch alone make a second program, "backward.last", with all of them,
// and those that begin gradient sums (passes/begin_sums.h) one for the first, "backward.first";
// both make one for a step of a single micro-batch, "backward.only", where others have several.
// Graphs of a pipeline stage have several chunks: programs are then named "forward.<chunk>", and
// the activations of each chunk are kept for as many micro-batches as may be in flight. Where
// micro-batches run in pairs (passes/overlap/pair_programs.h), forward and backward share no
// workspace, and what the host gives a micro-batch lies in slots, too.
struct GraphToPlan {
  const Graph* graph = nullptr;
  // Program name of each phase; empty: the phase is not expected.
  std::string forward = "forward";
  std::string backward = "backward";
  std::string update = "update";
  std::map<int, int64_t> slots;        // by chunk; 1 where it is not named
  bool several_micro_batches = false;  // of a step; with one, all programs are of the first
  bool also_one_micro_batch = false;   // in other steps of the same run
  bool in_pairs = false;
  std::set<std::string, std::less<>> batch_inputs = {};  // of a micro-batch, by name
};

// `kernels` gives each step's scratch; an op without a kernel there has none.
// `rank` in the graphs' mesh: its programs differ from others' only in what ops' `localize` says.
ProgramSet plan_memory(const std::vector<GraphToPlan>& graphs, const KernelTable& kernels,
                       int64_t rank = 0);

}  // namespace skein
