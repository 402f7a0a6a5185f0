#include "skein/ir/kernel.h"

namespace skein {

// cuBLASLt reads weights as they are: no graph for a GPU has these ops.
void add_packed_linear_cuda_kernels(KernelTable& table) { static_cast<void>(table); }

}  // namespace skein
