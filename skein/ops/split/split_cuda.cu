#include "skein/ir/kernel.h"

namespace skein {
namespace {

// The layout does it all.
void run(const KernelCall&) {}

}  // namespace

void add_split_cuda_kernels(KernelTable& table) {
  table["split"] = {.run = run};
  table["concat"] = {.run = run};
}

}  // namespace skein
