#include "skein/ir/kernel.h"

namespace skein {
namespace {

template <typename T>
void run_as(const KernelCall& call) {
  const View &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  const int64_t rows = y.rows(), cols = y.cols();
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T* a_row = a.as<T>() + row * a.row_stride;
    const T* b_row = b.as<T>() + row * b.row_stride;
    T* y_row = y.as<T>() + row * y.row_stride;
    for (int64_t col = 0; col < cols; ++col) {
      y_row[col] = T(static_cast<float>(a_row[col]) + static_cast<float>(b_row[col]));
    }
  }
}

void run(const KernelCall& call) {
  if (call.outputs[0].dtype == DType::kBF16) {
    run_as<bfloat16>(call);
  } else {
    run_as<float>(call);
  }
}

}  // namespace

void add_add_cpu_kernels(KernelTable& table) { table["add"] = {.run = run}; }

}  // namespace skein
