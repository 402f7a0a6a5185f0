// The rate that this machine's matrix units reach: the reference for model_flops_utilization.
//
// Method   large products C = A B (1024^3 for up to 4 threads, 2048^3 for more; f32 or bf16 in,
//          fp32 sums), repeated for `seconds`; the best one counts, or where the threads had under
//          90 % of their cores, as where there are more workers than cores, as much of it as they
//          had. At the current number of OpenMP threads.
// Units    floating-point operations a second; a multiply and an add count as two.
// Threads  uses the OpenMP pool; allocates some tens of MB while it runs.
#pragma once

#include "skein/tensor/dtype.h"

namespace skein {

// The better of oneDNN's product and our own, so that the reported utilization never flatters.
double measure_matmul_ceiling_flops(DType dtype, double seconds);

// Our own product alone: the rate that the kernels of a step can reach.
double measure_own_matmul_flops(DType dtype, double seconds);

// oneDNN's product alone; of f32 where it has none of bf16 for this CPU, and 0 where it has none.
double measure_onednn_matmul_flops(DType dtype, double seconds);

}  // namespace skein
