// Matrix products on a GPU, and what they are in double precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "skein/ops/matmul/matmul_cuda.h"
#include "tests/cuda/device_matrix.h"

namespace skein::op_test {

struct MatmulCase {
  int64_t rows = 13, cols = 24, depth = 40;
  DType in = DType::kBF16, out = DType::kBF16;
  bool a_outer = false, b_outer = false, accumulate = false, bias = false;
  int64_t offset = 0, padding = 0;
};
// A product, and everything that it reads.
class MatmulTrial {
 public:
  explicit MatmulTrial(const MatmulCase& c)
      : case_(c),
        a_(c.in, c.a_outer ? c.depth : c.rows, c.a_outer ? c.rows : c.depth, c.offset, c.padding,
           1),
        b_(c.in, c.b_outer ? c.depth : c.cols, c.b_outer ? c.cols : c.depth, c.offset, c.padding,
           2),
        c_(c.out, c.rows, c.cols, c.offset, c.padding, 3),
        bias_(c.in, 1, c.cols, c.offset, 0, 4),
        scratch_(test_device().allocate(cuda_matmul_scratch_bytes(c.cols))),
        before_(c_.values()) {}
  ~MatmulTrial() { test_device().release(scratch_); }
  MatmulTrial(const MatmulTrial&) = delete;
  MatmulTrial& operator=(const MatmulTrial&) = delete;

  // Returns what C is afterwards.
  std::vector<double> run(CudaMatmuls& matmuls) {
    GraphRun::fill(c_.view(), before_);
    enqueue(matmuls, test_device().stream);
    test_device().synchronize();
    return c_.values();
  }
  void choose(CudaMatmuls& matmuls) {
    matmuls.choose(matmul(), scratch_, test_device().stream);
    test_device().synchronize();
  }
  void enqueue(CudaMatmuls& matmuls, void* stream) { matmuls.run(matmul(), scratch_, stream); }
  CudaMatmul matmul() const {
    const View &a = a_.view(), &b = b_.view(), &c = c_.view();
    CudaMatmul matmul{case_.rows, case_.cols, case_.depth};
    matmul.a = {a.data, a.dtype, a.row_stride, case_.a_outer};
    matmul.b = {b.data, b.dtype, b.row_stride, case_.b_outer};
    matmul.c = {c.data, c.dtype, c.row_stride, case_.accumulate};
    if (case_.bias) matmul.c.bias = bias_.view().data;
    matmul.c.bias_dtype = case_.in;
    return matmul;
  }
  std::vector<double> values() const { return c_.values(); }

  void expect_right(const std::vector<double>& got, const std::string& what) const {
    const std::vector<double> a = a_.values(), b = b_.values(), bias = bias_.values();
    const auto& [rows, cols, depth] = std::tie(case_.rows, case_.cols, case_.depth);
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t row = i / cols, col = i % cols;
      double want = case_.accumulate ? before_[i] : 0.0;
      if (case_.bias) want += bias[col];
      for (int64_t k = 0; k < depth; ++k) {
        want += (case_.a_outer ? a[k * rows + row] : a[row * depth + k]) *
                (case_.b_outer ? b[k * cols + col] : b[col * depth + k]);
      }
      const double allowed = (case_.out == DType::kBF16 ? 0x1p-8 * std::abs(want) : 0.0) + 2e-5;
      ASSERT_LE(std::abs(got[i] - want), allowed) << what << " at " << row << ", " << col;
    }
  }

 private:
  MatmulCase case_;
  DeviceMatrix a_, b_, c_, bias_;
  void* scratch_;
  std::vector<double> before_;
};

inline std::vector<MatmulCase> all_matmul_cases() {
  std::vector<MatmulCase> cases;
  for (const int64_t padding : {0, 3}) {
    for (const DType in : {DType::kF32, DType::kBF16}) {
      for (const bool bias : {false, true}) {
        cases.push_back({.in = in, .out = in, .bias = bias, .offset = padding, .padding = padding});
        cases.push_back({.in = in, .out = DType::kF32, .bias = bias, .offset = padding});
      }
      cases.push_back({.in = in, .out = in, .b_outer = true, .offset = padding});
      cases.push_back({.in = in,
                       .out = DType::kF32,
                       .a_outer = true,
                       .b_outer = true,
                       .accumulate = true,
                       .padding = padding});
    }
  }
  return cases;
}

}  // namespace skein::op_test
