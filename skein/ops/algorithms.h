// Which algorithms the kernels of a device have chosen by measuring: cuBLASLt's, for matrix
// products.
//
// Algorithms add in different orders, so a run has the same bits only with the same choices. They
// belong to the run: train/run_algorithms.h has ranks agree on them and checkpoints keep them. What
// a machine measured before (ops/cuda/algorithm_cache.h) is only where a new run begins.
#pragma once

#include <map>
#include <string>

namespace skein {

struct AlgorithmChoices {
  // What the choices are good for: the GPU's name and the version of cuBLASLt. Empty: there are
  // none.
  std::string library;
  std::map<std::string, std::string> by_problem;  // the algorithm's bytes in hexadecimal

  bool operator==(const AlgorithmChoices&) const = default;
};

// Of this process's current GPU.
AlgorithmChoices chosen_algorithms();
// From here on products use these, whatever was chosen before; one that cuBLASLt no longer takes is
// as if it were not there. Before a program is recorded that has such a product.
void adopt_algorithms(const AlgorithmChoices& choices);

}  // namespace skein
