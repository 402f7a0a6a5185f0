// The CUDA kernels of rms_norm lie in two files.
#pragma once

#include "skein/ir/kernel.h"

namespace skein {

// Of rms_norm_backward_cuda.cu.
void run_rms_norm_backward(const KernelCall& call);

}  // namespace skein
