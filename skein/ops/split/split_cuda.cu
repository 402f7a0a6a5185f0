#include "skein/ir/kernel.h"

namespace skein {
namespace {

// There is nothing to compute: the layout makes outputs views of the input.
void run(const KernelCall&) {}

}  // namespace

void add_split_cuda_kernels(KernelTable& table) {
  table["split"] = {.run = run};
  table["concat"] = {.run = run};
}

}  // namespace skein
