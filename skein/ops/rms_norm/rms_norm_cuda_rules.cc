#include "skein/ops/cuda/norm_groups.h"
#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

int64_t backward_scratch_bytes(const KernelCall& call) {
  const View& dx = call.outputs[0];
  return int64_t{norm_groups::num_groups(dx)} * dx.cols() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

void add_rms_norm_cuda_rules(KernelTable& table) {
  table["rms_norm_backward"].scratch_bytes = backward_scratch_bytes;
}

}  // namespace skein
