#include "skein/ops/cuda_rules.h"
#include "skein/ops/redistribute/redistribute_plan.h"

namespace skein {
namespace {

int64_t scratch_bytes(const KernelCall& call) { return plan_redistribute(call).scratch_bytes; }

}  // namespace

void add_redistribute_cuda_rules(KernelTable& table) {
  table["redistribute"].scratch_bytes = scratch_bytes;
}

}  // namespace skein
