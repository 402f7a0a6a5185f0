// A product of emulated cuBLASLt: its descriptors, and how it is computed when its turn comes.
#pragma once

#include <cstdint>

#include "cublasLt.h"

struct CublasLtEmulationProduct {
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;
  const float *a_scale = nullptr, *b_scale = nullptr;
  int8_t fast_accumulation = 0;
};
struct CublasLtEmulationLayout {
  cudaDataType_t type;
  int64_t rows, cols, leading;
};

namespace cuda_emulation {

using Layout = CublasLtEmulationLayout;
using Product = CublasLtEmulationProduct;

inline bool is_fp8(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
inline int64_t size_of(cudaDataType_t type) {
  return is_fp8(type) ? 1 : type == CUDA_R_16BF ? 2 : 4;
}

// Sizes of a matrix as the product sees it, after it was transposed.
inline int64_t rows(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.rows : layout.cols;
}
inline int64_t cols(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.cols : layout.rows;
}

// A product that was enqueued, with all that it reads.
struct EnqueuedProduct {
  Product product;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  Layout a_layout, b_layout, c_layout, d_layout;
  int algorithm;
  float* parts;

  void run() const;

 private:
  float sum(int64_t row, int64_t col, int64_t begin, int64_t end) const;
  float scaled(float total) const;
  void finish(int64_t row, int64_t col, float total) const;
};

}  // namespace cuda_emulation
