#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "cublas_lt_product.h"
#include "cuda_emulation.h"

struct CublasLtEmulationContext {};
struct CublasLtEmulationPreference {
  uint64_t workspace_bytes = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  // A, B, C, D
};

using cuda_emulation::is_fp8, cuda_emulation::size_of, cuda_emulation::rows, cuda_emulation::cols;
using cuda_emulation::Layout, cuda_emulation::Product, cuda_emulation::EnqueuedProduct;

namespace {

constexpr uint64_t kMagic = 0x6d6574616c756d65;
constexpr int kNumAlgorithms = 3;

// What is documented of cublasLtMatmul() for 8-bit matrices; that a scale that does not lie at a
// multiple of 16 bytes leaves no algorithm was seen of 13.1 on an H200.
bool takes_fp8(const Product& product, const Layout& a, const Layout& b, const Layout& d) {
  const auto is_multiple = [](int64_t elements, const Layout& of) {
    return elements * size_of(of.type) % 16 == 0;
  };
  const auto is_aligned = [](const float* scale) {
    return reinterpret_cast<uintptr_t>(scale) % 16 == 0;
  };
  const bool bias = product.epilogue == CUBLASLT_EPILOGUE_BIAS;
  return is_fp8(a.type) && is_fp8(b.type) &&
         (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
         product.transpose_a == CUBLAS_OP_T && product.transpose_b == CUBLAS_OP_N &&
         is_multiple(a.rows, a) && is_multiple(d.rows, d) && is_multiple(a.leading, a) &&
         is_multiple(b.leading, b) && is_multiple(d.leading, d) &&
         (!bias || d.type == CUDA_R_16BF) && is_aligned(product.a_scale) &&
         is_aligned(product.b_scale);
}

cublasStatus_t check(const Product& product, const Layout& a, const Layout& b, const Layout& c,
                     const Layout& d) {
  for (const Layout& layout : {a, b, c, d}) {
    if (layout.rows < 1 || layout.cols < 1 || layout.leading < layout.rows) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (rows(a, product.transpose_a) != d.rows || cols(b, product.transpose_b) != d.cols ||
      cols(a, product.transpose_a) != rows(b, product.transpose_b) || c.rows != d.rows ||
      c.cols != d.cols || c.type != d.type) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (is_fp8(a.type) || is_fp8(b.type)) {
    if (!takes_fp8(product, a, b, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  } else {
    if (product.a_scale != nullptr || product.b_scale != nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (a.type != b.type || (a.type == CUDA_R_32F && d.type != CUDA_R_32F)) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  const bool bias = product.epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (bias && product.bias_type != -1 && product.bias_type != d.type) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

size_t workspace_of(int algorithm, const Layout& d) {
  return algorithm == 1 ? static_cast<size_t>(d.rows * d.cols) * 2 * sizeof(float) : 0;
}
uint32_t scheme_of(int algorithm) {
  return algorithm == 0   ? CUBLASLT_REDUCTION_SCHEME_NONE
         : algorithm == 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                          : CUBLASLT_REDUCTION_SCHEME_INPLACE;
}

// `data` holds a mark, the algorithm's number, the alignments that it was proposed for, and two
// more marks. Returns the number, or -1 where this is no algorithm of ours.
int index_of(const cublasLtMatmulAlgo_t& algorithm) {
  for (const int i : {0, 6, 7}) {
    if (algorithm.data[i] != kMagic) return -1;
  }
  return algorithm.data[1] < kNumAlgorithms ? static_cast<int>(algorithm.data[1]) : -1;
}
cublasLtMatmulAlgo_t algorithm_of(int index, const uint32_t (&alignments)[4]) {
  cublasLtMatmulAlgo_t algorithm = {{kMagic, static_cast<uint64_t>(index)}};
  for (int i = 0; i < 4; ++i) algorithm.data[2 + i] = alignments[i];
  algorithm.data[6] = algorithm.data[7] = kMagic;
  return algorithm;
}
bool is_aligned(const void* data, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

void count(int64_t& calls) {
  const std::lock_guard<std::recursive_mutex> lock(cuda_emulation::device_mutex());
  ++calls;
}

template <typename T>
cublasStatus_t read(const void* value, size_t bytes, T& into) {
  if (value == nullptr || bytes != sizeof(into)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&into, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

namespace cuda_emulation {

CublasLt& cublas_lt() {
  static CublasLt state = [] {
    CublasLt made;
    const char* slow = std::getenv("CUDA_EMULATION_SLOW_ALGORITHM");
    if (slow != nullptr) made.microseconds[std::clamp(std::atoi(slow), 0, 2)] = 20'000;
    return made;
  }();
  return state;
}

}  // namespace cuda_emulation

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INVALID_VALUE";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new CublasLtEmulationContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  cudaDeviceSynchronize();
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *product = new Product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return read(value, bytes, product->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return read(value, bytes, product->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return read(value, bytes, product->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return read(value, bytes, product->bias);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return read(value, bytes, product->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return read(value, bytes, product->b_scale);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return read(value, bytes, product->fast_accumulation);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return read(value, bytes, product->bias_type);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t leading) {
  *layout = new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(cols), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new CublasLtEmulationPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return read(value, bytes, preference->workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return read(value, bytes, preference->schemes);
    default:
      return read(value, bytes,
                  preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* returned) {
  *returned = 0;
  if (handle == nullptr || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t status = check(*product, *a, *b, *c, *d);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  count(cuda_emulation::cublas_lt().num_proposals);
  if (!cuda_emulation::cublas_lt().proposes) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Layout* const layouts[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    const int64_t least = is_fp8(a->type) ? 16 : size_of(layouts[i]->type);
    if (preference->alignments[i] % least != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  for (int i = 0; i < kNumAlgorithms && *returned < requested; ++i) {
    if ((scheme_of(i) & ~preference->schemes) != 0) continue;
    if (workspace_of(i, *d) > preference->workspace_bytes) continue;
    results[(*returned)++] = {algorithm_of(i, preference->alignments), workspace_of(i, *d),
                              CUBLAS_STATUS_SUCCESS, 1.0f};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const cublasStatus_t status = check(*product, *a, *b, *c, *d);
  const int index = index_of(*algorithm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (index < 0) return CUBLAS_STATUS_INVALID_VALUE;
  result->workspaceSize = workspace_of(index, *d);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  cublasLtMatmulHeuristicResult_t result = {};
  const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle, product, a_layout, b_layout,
                                                        c_layout, d_layout, algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const bool in_place = c == d && c_layout->leading != d_layout->leading;
  const bool no_bias = product->epilogue == CUBLASLT_EPILOGUE_BIAS && product->bias == nullptr;
  if (handle == nullptr || a == nullptr || b == nullptr || d == nullptr || in_place || no_bias ||
      !is_aligned(workspace, 256) || result.workspaceSize > workspace_bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // A GPU would fault here. The bias must be aligned too, though no preference names it.
  const uint64_t* const alignments = algorithm->data + 2;
  if (!is_aligned(a, alignments[0]) || !is_aligned(b, alignments[1]) ||
      !is_aligned(c, alignments[2]) || !is_aligned(d, alignments[3]) ||
      !is_aligned(product->bias, 16)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  count(cuda_emulation::cublas_lt().num_products);
  if (is_fp8(a_layout->type)) count(cuda_emulation::cublas_lt().num_fp8_products);
  if (product->fast_accumulation != 0) count(cuda_emulation::cublas_lt().num_fast_accumulations);
  const EnqueuedProduct work = {*product,
                                *static_cast<const float*>(alpha),
                                *static_cast<const float*>(beta),
                                a,
                                b,
                                c,
                                d,
                                *a_layout,
                                *b_layout,
                                *c_layout,
                                *d_layout,
                                index_of(*algorithm),
                                static_cast<float*>(workspace)};
  cuda_emulation::enqueue(stream, [work] { work.run(); });
  return CUBLAS_STATUS_SUCCESS;
}
