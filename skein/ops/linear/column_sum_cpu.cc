#include "skein/ops/linear/column_sum_cpu.h"

#include <algorithm>

namespace skein {
namespace {

constexpr int64_t kTaskCols = 64;
constexpr int64_t kBlockRows = 64;

template <typename T>
void add_task(const View& from, int64_t first, int64_t cols, float* sums) {
  float total[kTaskCols] = {};
  for (int64_t row = 0; row < from.rows(); row += kBlockRows) {
    float block[kTaskCols] = {};
    const int64_t end = std::min(from.rows(), row + kBlockRows);
    for (int64_t r = row; r < end; ++r) {
      const T* values = from.as<T>() + r * from.row_stride + first;
#pragma omp simd
      for (int64_t col = 0; col < cols; ++col) block[col] += static_cast<float>(values[col]);
    }
    for (int64_t col = 0; col < cols; ++col) total[col] += block[col];
  }
  for (int64_t col = 0; col < cols; ++col) sums[first + col] += total[col];
}

}  // namespace

void add_column_sums(const View& from, float* sums) {
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < from.cols(); first += kTaskCols) {
    const int64_t cols = std::min(kTaskCols, from.cols() - first);
    if (from.dtype == DType::kBF16) {
      add_task<bfloat16>(from, first, cols, sums);
    } else {
      add_task<float>(from, first, cols, sums);
    }
  }
}

}  // namespace skein
