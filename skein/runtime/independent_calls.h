// Which neighbouring calls of a program may run as one (Kernel::run_together).
#pragma once

#include <cstddef>
#include <vector>

#include "skein/ir/kernel.h"

namespace skein {

// How many of the calls, from the first on, write nothing that another one of them reads or
// writes. At least 1, as long as there are calls. Memory with gaps between rows counts as shared.
size_t num_independent(const std::vector<const KernelCall*>& calls);

}  // namespace skein
