// The matrix product without a library: right for every problem, and slow. For the rare one that
// cuBLASLt has no algorithm for.
#pragma once

#include "skein/ir/kernel.h"
#include "skein/ops/matmul/matmul_cuda.h"

namespace skein {

// A bias is of the dtype of C. Of `call` only the stream counts.
void run_plain_matmul(const CudaMatmul& matmul, const KernelCall& call);

}  // namespace skein
