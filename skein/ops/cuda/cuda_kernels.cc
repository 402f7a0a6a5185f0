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
  return table;
}

}  // namespace skein
