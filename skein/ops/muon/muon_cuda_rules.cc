#include "skein/ops/muon/muon_cuda_rules.h"

#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

int64_t scratch_bytes(const KernelCall& call) {
  const View& y = call.outputs[0];
  return muon_cuda::Scratch(OrthogonalizeSizes(y.shape), y.dtype).bytes;
}

}  // namespace

void add_muon_cuda_rules(KernelTable& table) {
  table["orthogonalize"] = {.scratch_bytes = scratch_bytes};
}

}  // namespace skein
