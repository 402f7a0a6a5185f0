#include <cstring>

#include "skein/ir/kernel.h"
#include "skein/ops/zigzag/zigzag.h"

namespace skein {
namespace {

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const bool matrix = x.shape.rank() == 2, inverse = call.attrs.flag("inverse");
  const int64_t rows = x.shape.dim(0), size = size_of(x.dtype);
  const int64_t row_bytes = size * (matrix ? x.cols() : 1);
  const int64_t x_stride = size * (matrix ? x.row_stride : 1);
  const int64_t y_stride = size * (matrix ? y.row_stride : 1);
  const int64_t length = call.attrs.integer("sequence_length");
  const int64_t parts = call.attrs.integer("parts"), sequences = rows / length;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t natural = zigzag_row(row, sequences, length, parts);
    std::memcpy(y.as<uint8_t>() + (inverse ? natural : row) * y_stride,
                x.as<const uint8_t>() + (inverse ? row : natural) * x_stride, row_bytes);
  }
}

}  // namespace

void add_zigzag_cpu_kernels(KernelTable& table) { table["zigzag"] = {.run = run}; }

}  // namespace skein
