// Which instructions of a program run beside those that follow, on a device with a second queue
// (Kernel::runs_beside), and where they must have ended: before the first instruction that writes
// what one of them reads, or reads or writes what one of them writes. Their scratch memory is their
// own (plan_memory). passes/check_memory sees that nothing else is missing.
//
// Cost  O(n m) for n instructions, m of which run beside
#pragma once

#include "skein/ir/program.h"

namespace skein {

void run_beside(Program& program, const KernelTable& kernels);

}  // namespace skein
