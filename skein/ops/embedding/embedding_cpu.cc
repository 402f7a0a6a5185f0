#include <omp.h>

#include <algorithm>
#include <cstring>

#include "skein/ir/kernel.h"

namespace skein {
namespace {

// The row of the whole table at which this rank's rows begin.
int64_t first_row(const KernelCall& call) {
  return call.attrs.has("first_row") ? call.attrs.integer("first_row") : 0;
}

void run(const KernelCall& call) {
  const View &table = call.inputs[1], &x = call.outputs[0];
  const int32_t* tokens = call.inputs[0].as<const int32_t>();
  const int64_t rows = x.rows(), vocabulary = table.rows(), size = size_of(x.dtype);
  const int64_t row_bytes = x.cols() * size, first = first_row(call);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    uint8_t* to = x.as<uint8_t>() + row * x.row_stride * size;
    const int64_t token = tokens[row] - first;
    if (token >= 0 && token < vocabulary) {
      std::memcpy(to, table.as<const uint8_t>() + token * table.row_stride * size, row_bytes);
    } else {
      std::memset(to, 0, row_bytes);
    }
  }
}

template <typename T>
void add_columns(const KernelCall& call, int64_t begin, int64_t end) {
  const View &dx = call.inputs[1], &sum = call.outputs[0];
  const int32_t* tokens = call.inputs[0].as<const int32_t>();
  const int64_t num_tokens = dx.rows(), vocabulary = sum.rows(), first = first_row(call);
  for (int64_t row = 0; row < num_tokens; ++row) {
    const int64_t token = tokens[row] - first;
    if (token < 0 || token >= vocabulary) continue;
    const T* from = dx.as<const T>() + row * dx.row_stride;
    float* to = sum.as<float>() + token * sum.row_stride;
#pragma omp simd
    for (int64_t col = begin; col < end; ++col) to[col] += static_cast<float>(from[col]);
  }
}

// Every thread adds all tokens in order, for columns of its own, so the bits do not depend on how
// the columns are divided.
void run_dw(const KernelCall& call) {
  const int64_t cols = call.outputs[0].cols();
  const bool narrow = call.inputs[1].dtype == DType::kBF16;
#pragma omp parallel
  {
    constexpr int64_t kLineElements = 32;  // a cache line of bf16
    const int64_t lines = (cols + kLineElements - 1) / kLineElements;
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = lines * thread / threads * kLineElements;
    const int64_t end = std::min(cols, lines * (thread + 1) / threads * kLineElements);
    if (begin < end) {
      narrow ? add_columns<bfloat16>(call, begin, end) : add_columns<float>(call, begin, end);
    }
  }
}

}  // namespace

void add_embedding_cpu_kernels(KernelTable& table) {
  table["embedding"] = {.run = run};
  table["embedding_dw"] = {.run = run_dw};
}

}  // namespace skein
