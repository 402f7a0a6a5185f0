// The part of a checkpoint that lives on the device: weights, master copies and moments, by name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "skein/checkpoint/checkpoint_layout.h"
#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"

namespace skein {

// One tensor that this rank has. Lists are in the order of the model, the weights first.
struct StateTensor {
  TensorSpec spec;   // the rank's part of it in checkpoints, which may be empty
  std::string name;  // name of the value in the programs
  Box box;           // the rank holds `range` of this box
  FlatRange range;
  // The parameter p that the tensor belongs to: "exp_avg.<p>", "exp_avg_sq.<p>", "master.<p>" or p
  // itself.
  std::string parameter() const;
};
// `stored_elsewhere`: parameters of this rank's graph that another pipeline stage stores.
std::vector<StateTensor> state_tensors(const Graph& training_graph, int64_t rank = 0,
                                       const std::set<std::string>& stored_elsewhere = {});

std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors);

// Fills the device from a checkpoint. Throws Error{kInvalid} naming the first tensor that is
// missing or has another shape or dtype, before anything is changed.
void restore_state(const CheckpointReader& reader, const std::vector<StateTensor>& tensors,
                   Executor& executor);

}  // namespace skein
