#include "skein/ops/embedding/embedding_cuda_rules.h"

#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

int64_t dw_scratch_bytes(const KernelCall& call) {
  const View& dx = call.inputs[1];
  return 2 * dx.rows() * static_cast<int64_t>(sizeof(embedding_cuda::Key)) +
         embedding_cuda::num_windows(call) * dx.cols() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

void add_embedding_cuda_rules(KernelTable& table) {
  table["embedding_dw"].scratch_bytes = dw_scratch_bytes;
}

}  // namespace skein
