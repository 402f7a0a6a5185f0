// What planning must know of a GPU's kernels: their scratch memory. Host code of every build, so
// that a plan for GPUs needs neither CUDA nor a GPU, and has the same bytes without them.
//
// A folder of ops.def whose CUDA kernels take scratch has a file <op>_cuda_rules.cc (attention:
// cuda/attention_scratch.cc) with add_<op>_cuda_rules(), and a line in cuda_rules.cc; its
// <op>_cuda.cu leaves Kernel::scratch_bytes null, and takes the sizes that both need from there.
#pragma once

#include "skein/ir/kernel.h"

namespace skein {

struct CudaRuleOptions {
  // Attention's own kernels are those of Hopper, as where no GPU says otherwise.
  bool warpgroups = true;
};

// Kernels of which scratch_bytes alone is set; ops that take none are not among them.
KernelTable cuda_rules(const CudaRuleOptions& options = {});

void add_attention_cuda_rules(KernelTable& table, const CudaRuleOptions& options);

}  // namespace skein
