#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cublasLt.h"
#include "cuda_emulation.h"

struct CublasLtEmulationContext {};
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
struct CublasLtEmulationPreference {
  uint64_t workspace_bytes = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  // A, B, C, D
};

namespace {

using Layout = CublasLtEmulationLayout;
using Product = CublasLtEmulationProduct;

constexpr uint64_t kMagic = 0x6d6574616c756d65;
constexpr int kNumAlgorithms = 3;

bool is_fp8(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
int64_t size_of(cudaDataType_t type) { return is_fp8(type) ? 1 : type == CUDA_R_16BF ? 2 : 4; }

float from_fp8(uint8_t code, cudaDataType_t type) {
  const bool e4m3 = type == CUDA_R_8F_E4M3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, size = code & 0x7f;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (size == 0x7c && !e4m3) return sign * INFINITY;
  if (size == 0x7f || (size > 0x7c && !e4m3)) return NAN;
  const int exponent = size >> mantissa_bits, mantissa = size & ((1 << mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
}

float value_of(uint8_t code, cudaDataType_t type) {
  static const std::vector<float> values = [] {
    std::vector<float> all;
    for (const cudaDataType_t of : {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2}) {
      for (int i = 0; i < 256; ++i) all.push_back(from_fp8(static_cast<uint8_t>(i), of));
    }
    return all;
  }();
  return values[(type == CUDA_R_8F_E4M3 ? 0 : 256) + code];
}

float load(const void* data, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  if (is_fp8(type)) return value_of(static_cast<const uint8_t*>(data)[i], type);
  return __uint_as_float(static_cast<unsigned>(static_cast<const uint16_t*>(data)[i]) << 16);
}
void store(void* data, cudaDataType_t type, int64_t i, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  const unsigned word = __float_as_uint(value);
  static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(
      std::isnan(value) ? (word >> 16) | 0x40 : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

// Of a matrix that is transposed, as the product sees it.
int64_t rows(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.rows : layout.cols;
}
int64_t cols(const Layout& layout, cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? layout.cols : layout.rows;
}
int64_t at(const Layout& layout, cublasOperation_t operation, int64_t row, int64_t col) {
  return operation == CUBLAS_OP_N ? row + col * layout.leading : col + row * layout.leading;
}

// What is documented of cublasLtMatmul() for 8-bit matrices.
bool takes_fp8(const Product& product, const Layout& a, const Layout& b, const Layout& d) {
  const auto is_multiple = [](int64_t elements, const Layout& of) {
    return elements * size_of(of.type) % 16 == 0;
  };
  const bool bias = product.epilogue == CUBLASLT_EPILOGUE_BIAS;
  return is_fp8(a.type) && is_fp8(b.type) &&
         (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
         product.transpose_a == CUBLAS_OP_T && product.transpose_b == CUBLAS_OP_N &&
         is_multiple(a.rows, a) && is_multiple(d.rows, d) && is_multiple(a.leading, a) &&
         is_multiple(b.leading, b) && is_multiple(d.leading, d) && (!bias || d.type == CUDA_R_16BF);
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

// data: a mark, the number of the algorithm, the alignments that it was proposed for, two marks
// more. Its number, or -1 for what is none.
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

// All that a product needs when its turn comes.
struct Work {
  Product product;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  Layout a_layout, b_layout, c_layout, d_layout;
  int algorithm;
  float* parts;

  float sum(int64_t row, int64_t col, int64_t begin, int64_t end) const {
    float total = 0;
    for (int64_t k = begin; k < end; ++k) {
      total += load(a, a_layout.type, at(a_layout, product.transpose_a, row, k)) *
               load(b, b_layout.type, at(b_layout, product.transpose_b, k, col));
    }
    return total;
  }
  // Of a sum, as it is added to the output.
  float scaled(float total) const {
    if (product.a_scale != nullptr) total *= *product.a_scale;
    if (product.b_scale != nullptr) total *= *product.b_scale;
    return alpha * total;
  }
  void finish(int64_t row, int64_t col, float total) const {
    float value = scaled(total);
    if (beta != 0) value += beta * load(c, c_layout.type, row + col * c_layout.leading);
    if (product.epilogue == CUBLASLT_EPILOGUE_BIAS) value += load(product.bias, d_layout.type, row);
    store(d, d_layout.type, row + col * d_layout.leading, value);
  }
  void run() const {
    const int64_t depth = cols(a_layout, product.transpose_a), half = depth / 2;
    for (int64_t col = 0; col < d_layout.cols; ++col) {
      for (int64_t row = 0; row < d_layout.rows; ++row) {
        float* const part = parts + (row + col * d_layout.rows) * 2;
        if (algorithm == 0) finish(row, col, sum(row, col, 0, depth));
        if (algorithm == 1) {
          part[0] = sum(row, col, 0, half);
          part[1] = sum(row, col, half, depth);
        }
        if (algorithm == 2) {
          const int64_t element = row + col * d_layout.leading;
          finish(row, col, sum(row, col, 0, half));
          const float first = load(d, d_layout.type, element);
          store(d, d_layout.type, element, first + scaled(sum(row, col, half, depth)));
        }
      }
    }
    for (int64_t i = 0; algorithm == 1 && i < d_layout.rows * d_layout.cols; ++i) {
      finish(i % d_layout.rows, i / d_layout.rows, parts[2 * i] + parts[2 * i + 1]);
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(cuda_emulation::cublas_lt().microseconds[algorithm]));
  }
};

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
  // A GPU would fault here. A bias counts as well, which no preference speaks of.
  const uint64_t* const alignments = algorithm->data + 2;
  if (!is_aligned(a, alignments[0]) || !is_aligned(b, alignments[1]) ||
      !is_aligned(c, alignments[2]) || !is_aligned(d, alignments[3]) ||
      !is_aligned(product->bias, 16)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  count(cuda_emulation::cublas_lt().num_products);
  if (is_fp8(a_layout->type)) count(cuda_emulation::cublas_lt().num_fp8_products);
  const Work work = {*product,
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
