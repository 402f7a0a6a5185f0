#include <algorithm>
#include <cstring>

#include "skein/ir/kernel.h"

namespace skein {
namespace {

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const auto* index = call.inputs[1].as<const int32_t>();
  const int64_t size = size_of(x.dtype), last = x.rows() - 1;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < y.rows(); ++row) {
    const int64_t from = std::clamp<int64_t>(index[row], 0, last);
    std::memcpy(y.as<uint8_t>() + row * y.row_stride * size,
                x.as<const uint8_t>() + from * x.row_stride * size, x.cols() * size);
  }
}

}  // namespace

void add_take_rows_cpu_kernels(KernelTable& table) { table["take_rows"] = {.run = run}; }

}  // namespace skein
