// The algorithms that a run's kernels chose by measuring (ops/algorithms.h) are the run's: all
// ranks take the same, and a checkpoint keeps them, so that a restart on another machine has the
// same bits.
//
// Who chooses  what a checkpoint has stays. Of the rest, the first rank of each pipeline stage
//              measures, or finds what its machine measured before; of two stages with the same
//              problem the first one's choice counts
#pragma once

#include <functional>
#include <string>

#include "skein/backends/backend.h"
#include "skein/base/json.h"
#include "skein/comm/communicator.h"
#include "skein/runtime/executor.h"
#include "skein/tensor/mesh.h"

namespace skein {

// A rank's kernels that choose; of a device that has none, empty functions.
struct AlgorithmKernels {
  std::function<AlgorithmChoices()> chosen;
  std::function<void(const AlgorithmChoices&)> adopt;
  std::function<void()> choose;  // all that is not chosen yet
};
AlgorithmKernels algorithm_kernels(Executor& executor);

// Before the first step, on all ranks at once. `kept`: what the checkpoint has, or nothing. Returns
// what the next one should keep: without kernels that choose, `kept`.
// Errors  kUsage where ranks have different GPUs or versions of cuBLASLt
AlgorithmChoices agree_on_algorithms(Communicator& world, const Mesh& mesh,
                                     const AlgorithmKernels& kernels, const AlgorithmChoices& kept);

// As a checkpoint's manifest has them (docs/checkpoint_format.md); null: there are none.
Json algorithms_to_json(const AlgorithmChoices& choices);
// Errors  kInvalid naming `where`
AlgorithmChoices algorithms_from_json(const Json& json, const std::string& where);

}  // namespace skein
