// cuBLASLt as our products need it: the library, the problems that it is asked for, and their
// descriptors. Internal to matmul_cuda.cu, which chooses algorithms and runs products.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <string>
#include <vector>

#include "skein/ops/cuda/library_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"
#include "skein/ops/matmul/matmul_cuda_rules.h"

namespace skein::matmul_cuda {

// Of the workspace that is planned the emulated library gets little: tests look at every byte of
// it, each time.
#ifdef SKEIN_CUDA_EMULATED
constexpr int64_t kWorkspaceBytes = int64_t{64} << 10;
#else
constexpr int64_t kWorkspaceBytes = kCudaMatmulWorkspaceBytes;
#endif
constexpr int64_t kWorkspaceAlignment = kCudaMatmulWorkspaceAlignment;

constexpr const char* kAdvice =
    "install cuBLAS of CUDA 13 (libcublas-13-0 among NVIDIA's packages, or pip's nvidia-cublas) "
    "and put its folder into LD_LIBRARY_PATH";

struct CublasLt {
  cuda::Library library{"cuBLASLt", "libcublasLt.so", CUBLAS_VER_MAJOR, kAdvice};

#define SKEIN_CUBLASLT(member, name) \
  decltype(&::name) member = SKEIN_LIBRARY_FUNCTION(library, name)
  SKEIN_CUBLASLT(version, cublasLtGetVersion);
  SKEIN_CUBLASLT(status_name, cublasLtGetStatusName);
  SKEIN_CUBLASLT(create, cublasLtCreate);
  SKEIN_CUBLASLT(destroy, cublasLtDestroy);
  SKEIN_CUBLASLT(create_product, cublasLtMatmulDescCreate);
  SKEIN_CUBLASLT(destroy_product, cublasLtMatmulDescDestroy);
  SKEIN_CUBLASLT(set_product, cublasLtMatmulDescSetAttribute);
  SKEIN_CUBLASLT(create_layout, cublasLtMatrixLayoutCreate);
  SKEIN_CUBLASLT(destroy_layout, cublasLtMatrixLayoutDestroy);
  SKEIN_CUBLASLT(create_preference, cublasLtMatmulPreferenceCreate);
  SKEIN_CUBLASLT(destroy_preference, cublasLtMatmulPreferenceDestroy);
  SKEIN_CUBLASLT(set_preference, cublasLtMatmulPreferenceSetAttribute);
  SKEIN_CUBLASLT(propose, cublasLtMatmulAlgoGetHeuristic);
  SKEIN_CUBLASLT(check_algorithm, cublasLtMatmulAlgoCheck);
  SKEIN_CUBLASLT(multiply, cublasLtMatmul);
#undef SKEIN_CUBLASLT

  CublasLt();
  void check(cublasStatus_t status, const char* what) const;
};
// Never destroyed: static products may outlive any other static object.
const CublasLt& cublas_lt();

// cublasLtMatmulAlgo_t is an unnamed struct, and nvcc 13.0 fails on containers of those.
struct Algorithm {
  cublasLtMatmulAlgo_t opaque;
};

enum class Fp8 { kNone, kE4M3, kE5M2 };

// The largest power of two, up to 64, that divides an address. No load of a kernel moves more
// bytes.
int alignment_of(const void* data);

// A matrix product without its addresses: all that the choice of an algorithm depends on.
struct Problem {
  struct Matrix {
    DType dtype;
    int64_t row_stride;
    bool depth_is_row;
    int alignment;
    Fp8 fp8 = Fp8::kNone;
    auto operator<=>(const Matrix&) const = default;

    std::string to_string() const;
    cudaDataType_t type() const;
    bool has_aligned_rows() const;
  };
  int64_t rows, cols, depth;
  Matrix a, b, c;
  bool accumulate, bias, fast_accumulation;
  auto operator<=>(const Problem&) const = default;

  explicit Problem(const CudaMatmul& matmul);

  bool is_fp8() const { return a.fp8 != Fp8::kNone; }
  // Whether cuBLASLt may be asked for it, where it is one of 8 bits.
  bool has_what_fp8_needs() const;
  std::string to_string() const;

 private:
  static Matrix of(const CudaMatmulOperand& operand);
};

// A problem as cuBLASLt describes it. cuBLASLt stores matrices by columns, so that it is asked for
// C^T = B^T A^T: its first matrix is our B.
class Product {
 public:
  explicit Product(const Problem& problem);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  const Problem& problem() const { return problem_; }

  // Must be called before the functions below, and again when addresses change.
  void set_pointers(const CudaMatmul& matmul);

  // In the order in which cuBLASLt expects them to be fast; empty where it has none.
  std::vector<Algorithm> proposals(cublasLtHandle_t handle) const;

  bool can_run(cublasLtHandle_t handle, const Algorithm& algorithm) const;

  cublasStatus_t run(cublasLtHandle_t handle, const CudaMatmul& matmul, const Algorithm& algorithm,
                     float alpha, void* workspace, cudaStream_t stream) const;

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value);
  cublasLtMatrixLayout_t layout(const Problem::Matrix& matrix, int64_t outer, int64_t depth);

  const CublasLt& lt_ = cublas_lt();
  const Problem problem_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

}  // namespace skein::matmul_cuda
