// The algorithms that a device's kernels chose by measuring: cuBLASLt's, for matrix products.
//
// Algorithms add in different orders, so a run repeats the same bits only with the same choices.
// They belong to the run: train/start/run_algorithms.h makes ranks agree on them, and checkpoints
// keep them. What a machine measured before (ops/cuda/algorithm_cache.h) is only the starting point
// of a new run.
#pragma once

#include <map>
#include <string>

namespace skein {

struct AlgorithmChoices {
  // What the choices are valid for: the GPU's name and the version of cuBLASLt. Empty: there are
  // none.
  std::string library;
  std::map<std::string, std::string> by_problem;  // the algorithm's bytes in hexadecimal

  bool operator==(const AlgorithmChoices&) const = default;
};

// The choices for this process's current GPU.
AlgorithmChoices chosen_algorithms();
// Makes products use these choices from here on, instead of earlier ones; a choice that cuBLASLt no
// longer accepts is ignored. Must be called before a program with such a product is recorded.
void adopt_algorithms(const AlgorithmChoices& choices);

}  // namespace skein
