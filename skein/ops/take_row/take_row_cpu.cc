#include <algorithm>
#include <cstring>

#include "skein/ir/kernel.h"

namespace skein {
namespace {

void run(const KernelCall& call) {
  const View& x = call.inputs[0];
  const int64_t index = *call.inputs[1].as<const int32_t>();
  const int64_t row = std::clamp<int64_t>(index, 0, x.rows() - 1), size = size_of(x.dtype);
  std::memcpy(call.outputs[0].data, x.as<const uint8_t>() + row * x.row_stride * size,
              x.cols() * size);
}

}  // namespace

void add_take_row_cpu_kernels(KernelTable& table) { table["take_row"] = {.run = run}; }

}  // namespace skein
