// The CUDA kernels of layer_norm lie in two files.
#pragma once

#include "skein/ir/kernel.h"

namespace skein {

// Of layer_norm_backward_cuda.cu.
void run_layer_norm_backward(const KernelCall& call);

}  // namespace skein
