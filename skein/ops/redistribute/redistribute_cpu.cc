#include <cstring>

#include "skein/base/error.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace {

std::shared_ptr<const void> prepare(const KernelCall& call) {
  if (!(call.inputs[0].shape == call.outputs[0].shape)) {
    fail(ErrorCode::kInternal, "[redistribute] {} to {} needs a collective: lowering left it out",
         call.inputs[0].shape.to_string(), call.outputs[0].shape.to_string());
  }
  return nullptr;
}

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const int64_t rows = y.rows(), size = size_of(y.dtype), row_bytes = y.cols() * size;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(y.as<uint8_t>() + row * y.row_stride * size,
                x.as<const uint8_t>() + row * x.row_stride * size, row_bytes);
  }
}

}  // namespace

void add_redistribute_cpu_kernels(KernelTable& table) {
  table["redistribute"] = {.run = run, .prepare = prepare};
}

}  // namespace skein
