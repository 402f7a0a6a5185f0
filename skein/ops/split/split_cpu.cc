#include "skein/ir/kernel.h"

namespace skein {
namespace {

// The layout already puts everything in place.
void run(const KernelCall&) {}

}  // namespace

void add_split_cpu_kernels(KernelTable& table) {
  table["split"] = {.run = run};
  table["concat"] = {.run = run};
}

}  // namespace skein
