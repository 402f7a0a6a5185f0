// What a checkpoint holds of the device: weights, master copies and moments, by name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "skein/checkpoint/checkpoint_layout.h"
#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"

namespace skein {

// One entry a tensor that this rank has, in the order of the model: the weights first.
struct StateTensor {
  TensorSpec spec;   // what the rank stores of it, which may be nothing
  std::string name;  // of the value in the programs
  Box box;           // what it holds: a range of a box
  FlatRange range;
  // "exp_avg.<p>", "exp_avg_sq.<p>" and "master.<p>" belong to the parameter p.
  std::string parameter() const;
};
// `stored_elsewhere`: parameters of this rank's graph that another stage stores.
std::vector<StateTensor> state_tensors(const Graph& training_graph, int64_t rank = 0,
                                       const std::set<std::string>& stored_elsewhere = {});

std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors);

// Fills the device from a checkpoint. Throws Error{kInvalid} naming the first tensor that is
// missing or has another shape or dtype, before anything is changed.
void restore_state(const CheckpointReader& reader, const std::vector<StateTensor>& tensors,
                   Executor& executor);

}  // namespace skein
