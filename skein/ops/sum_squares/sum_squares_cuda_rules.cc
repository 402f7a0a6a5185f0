#include "skein/ops/sum_squares/sum_squares_cuda_rules.h"

#include "skein/base/numbers/exact_sum.h"
#include "skein/ops/cuda_rules.h"

namespace skein {
namespace {

int64_t scratch_bytes(const KernelCall& call) {
  return sum_squares_cuda::max_blocks(call) * exact_sum::kBins *
         static_cast<int64_t>(sizeof(double));
}

}  // namespace

void add_sum_squares_cuda_rules(KernelTable& table) {
  table["sum_squares"].scratch_bytes = scratch_bytes;
}

}  // namespace skein
