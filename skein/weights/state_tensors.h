// The part of a checkpoint that lives on the device: weights, master copies and moments, by name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "skein/checkpoint/find/reader.h"
#include "skein/checkpoint/save/layout.h"
#include "skein/ir/program.h"
#include "skein/model/decoder.h"
#include "skein/runtime/executor.h"

namespace skein {

// One tensor that this rank has. Lists are in the order of the model, the weights first.
struct StateTensor {
  TensorSpec spec;   // the rank's part of it in checkpoints, which may be empty
  std::string name;  // name of the value in the programs
  Box box;           // the rank holds `range` of this box
  FlatRange range;
  int64_t padding = 0;  // elements behind the range, of rows that only pad the vocabulary: 0
  // The parameter that it is, or to whose state it belongs (ops/optimizer.h).
  std::string parameter() const;
};
// `stored_elsewhere`: parameters of this rank's graph that another pipeline stage stores.
// Checkpoints have the rows of the model, however the graph pads its vocabulary.
std::vector<StateTensor> state_tensors(const Graph& training_graph, const DecoderConfig& model,
                                       int64_t rank = 0,
                                       const std::set<std::string>& stored_elsewhere = {});

std::vector<TensorSpec> specs_of(const std::vector<StateTensor>& tensors);
std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors);

// Fills the device from a checkpoint. Throws Error{kInvalid} naming the first tensor that is
// missing or has another shape or dtype, before anything is changed.
void restore_state(const CheckpointReader& reader, const std::vector<StateTensor>& tensors,
                   Executor& executor);

}  // namespace skein
