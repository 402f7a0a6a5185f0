// What a checkpoint holds of the device: weights, master copies and moments, by name.
#pragma once

#include <vector>

#include "skein/checkpoint/checkpoint_layout.h"
#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"

namespace skein {

// One entry a tensor, in the order of the model: the weights first.
struct StateTensor {
  TensorSpec spec;
  std::string name;  // of the value in the programs
};
std::vector<StateTensor> state_tensors(const Graph& training_graph);

std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors);

// Fills the device from a checkpoint. Throws Error{kInvalid} naming the first tensor that is
// missing or has another shape or dtype, before anything is changed.
void restore_state(const CheckpointReader& reader, const std::vector<StateTensor>& tensors,
                   Executor& executor);

}  // namespace skein
