// The matrix-product algorithms that kernels chose by measuring (ops/algorithms.h) belong to the
// run: all ranks use the same ones and a checkpoint stores them, so that a restart on another
// machine computes the same bits.
//
// Who chooses  choices in a checkpoint are kept, if the library is the same. For other problems the
//              first rank of each pipeline stage measures, or uses its machine's cache of
//              measurements; where two stages have the same problem, the first stage's choice holds
#pragma once

#include <functional>
#include <string>

#include "skein/backends/backend.h"
#include "skein/base/text/json.h"
#include "skein/comm/communicator.h"
#include "skein/runtime/executor.h"
#include "skein/tensor/mesh.h"

namespace skein {

// Access to a rank's kernels that choose algorithms; empty functions on a device that has none.
struct AlgorithmKernels {
  std::function<AlgorithmChoices()> chosen;
  std::function<void(const AlgorithmChoices&)> adopt;
  std::function<void()> choose;  // measures every problem without a choice
};
AlgorithmKernels algorithm_kernels(Executor& executor);

// Collective, before the first step. `kept`: the choices in the checkpoint, or none. Returns those
// that the next checkpoint stores; on a device without kernels that choose, `kept`.
// Errors  kUsage where ranks have different GPUs or versions of cuBLASLt
AlgorithmChoices agree_on_algorithms(Communicator& world, const Mesh& mesh,
                                     const AlgorithmKernels& kernels, const AlgorithmChoices& kept);

// The form in a checkpoint's manifest (docs/checkpoint_format.md); null: there are none.
Json algorithms_to_json(const AlgorithmChoices& choices);
// Throws Error{kInvalid} naming `where`.
AlgorithmChoices algorithms_from_json(const Json& json, const std::string& where);

}  // namespace skein
