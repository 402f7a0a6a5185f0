#include "skein/ops/cuda/norm_groups.h"
#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

// The partial sums of dw, then those of db.
int64_t backward_scratch_bytes(const KernelCall& call) {
  const View& dx = call.outputs[0];
  const int64_t num_sums = call.has_input(7) ? 2 : 1;
  return num_sums * norm_groups::num_groups(dx) * dx.cols() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

void add_layer_norm_cuda_rules(KernelTable& table) {
  table["layer_norm_backward"].scratch_bytes = backward_scratch_bytes;
}

}  // namespace skein
