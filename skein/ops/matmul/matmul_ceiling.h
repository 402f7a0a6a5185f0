// The rate that this machine's matrix units reach: the reference for matmul_ceiling_share.
//
// Method   every OpenMP thread repeats a product of its own, C = A B with 256 rows and 1024 for the
//          other two dims (f32 or bf16 in, fp32 sums). Its rate is over its own processor time, so
//          that other programs on the machine take nothing away; its best product counts, and the
//          rates of all threads are added. All threads compute at the same time. They need cores of
//          their own: where workers share cores, the caller takes their share
//          (train/start/core_share.h)
// Limits   what other programs change besides time stays: the clock of the cores, the caches, the
//          sibling of a hyperthread
// Units    floating-point operations a second; a multiply and an add count as two.
// Cost     `seconds` of processor time a thread at least; on a busy machine more by the clock, at
//          most eight times as much and two products
// Threads  uses the OpenMP pool; allocates some 4 MB, and 2 MB more a thread, while it runs.
#pragma once

#include <algorithm>

#include "skein/tensor/dtype.h"

namespace skein {

struct MatmulCeiling {
  double own = 0;  // our own product: the rate that the kernels of a step can reach
  double onednn =
      0;  // oneDNN's; of f32 where it has none of bf16 for this CPU, 0 where it has none

  // The better of the two, so that the reported utilization never flatters.
  double flops() const { return std::max(own, onednn); }
};

// Each product takes half of `seconds`.
MatmulCeiling measure_matmul_ceiling(DType dtype, double seconds);
double measure_matmul_ceiling_flops(DType dtype, double seconds);  // flops()

// One of the two alone.
double measure_own_matmul_flops(DType dtype, double seconds);
double measure_onednn_matmul_flops(DType dtype, double seconds);

}  // namespace skein
