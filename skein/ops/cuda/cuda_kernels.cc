#include "skein/base/error.h"
#include "skein/ops/attention/cuda/attention_cuda.h"
#include "skein/ops/cuda_rules.h"
#include "skein/ops/ops.h"

namespace skein {

#define SKEIN_OP_FOLDER(folder) void add_##folder##_cuda_kernels(KernelTable&);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER

KernelTable cuda_kernels() {
  KernelTable table;
#define SKEIN_OP_FOLDER(folder) add_##folder##_cuda_kernels(table);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER
  for (const auto& [op, kernel] : table) {
    if (kernel.scratch_bytes == nullptr) continue;
    fail(ErrorCode::kInternal,
         "the CUDA kernel of {} says itself what scratch it takes, which plans of builds without "
         "CUDA do not know: expected a rule in skein/ops/cuda_rules.cc",
         op);
  }
  const CudaRuleOptions options = {.warpgroups = attention_cuda::plans_for_warpgroups()};
  for (const auto& [op, rule] : cuda_rules(options)) {
    table.at(op).scratch_bytes = rule.scratch_bytes;
  }
  return table;
}

}  // namespace skein
