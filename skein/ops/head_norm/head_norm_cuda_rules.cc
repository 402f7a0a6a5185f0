#include "skein/ops/head_norm/head_norm_cuda_rules.h"

#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

int64_t backward_scratch_bytes(const KernelCall& call) {
  return head_norm_cuda::num_groups(call) * head_norm_cuda::head_dim_of(call) *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace

void add_head_norm_cuda_rules(KernelTable& table) {
  table["head_norm_backward"].scratch_bytes = backward_scratch_bytes;
}

}  // namespace skein
