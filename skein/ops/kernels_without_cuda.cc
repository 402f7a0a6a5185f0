#include "skein/ops/algorithms.h"
#include "skein/ops/ops.h"

namespace skein {

KernelTable cuda_kernels() { return {}; }

AlgorithmChoices chosen_algorithms() { return {}; }
void adopt_algorithms(const AlgorithmChoices&) {}

}  // namespace skein
