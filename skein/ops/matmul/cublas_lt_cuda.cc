#include "skein/ops/matmul/cublas_lt_cuda.h"

#include "skein/base/error.h"

namespace skein::matmul_cuda {
namespace {

constexpr int kMaxProposals = 8;
constexpr int kMaxAlignment = 64;

cudaDataType_t type_of(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

Fp8 fp8_of(const CudaMatmulOperand& operand) {
  if (!operand.fp8) return Fp8::kNone;
  return operand.fp8->mantissa_bits == kE4M3.mantissa_bits ? Fp8::kE4M3 : Fp8::kE5M2;
}

}  // namespace

CublasLt::CublasLt() {
  if (version() / 10000 == CUBLAS_VER_MAJOR) return;
  fail(ErrorCode::kUnsupported,
       "the cuBLASLt that is installed is version {}, this build needs {}.x: {}", version() / 10000,
       CUBLAS_VER_MAJOR, kAdvice);
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorCode::kInternal, "{}: {}", what, status_name(status));
}

const CublasLt& cublas_lt() {
  static const CublasLt* const library = new CublasLt;
  return *library;
}

int alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  int alignment = kMaxAlignment;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

// ---- problems

std::string Problem::Matrix::to_string() const {
  const std::string_view type = fp8 == Fp8::kNone   ? dtype_name(dtype)
                                : fp8 == Fp8::kE4M3 ? "e4m3"
                                                    : "e5m2";
  return fmt::format("{}{}/{}@{}", type, depth_is_row ? "^T" : "", row_stride, alignment);
}

cudaDataType_t Problem::Matrix::type() const {
  return fp8 == Fp8::kNone ? type_of(dtype) : fp8 == Fp8::kE4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

bool Problem::Matrix::has_aligned_rows() const {
  const int64_t bytes = fp8 == Fp8::kNone ? size_of(dtype) : 1;
  return alignment % kFp8Multiple == 0 && row_stride * bytes % kFp8Multiple == 0;
}

Problem::Matrix Problem::of(const CudaMatmulOperand& operand) {
  return {operand.dtype, operand.row_stride, operand.depth_is_row, alignment_of(operand.data),
          fp8_of(operand)};
}

Problem::Problem(const CudaMatmul& matmul)
    : rows(matmul.rows),
      cols(matmul.cols),
      depth(matmul.depth),
      a(of(matmul.a)),
      b(of(matmul.b)),
      c{matmul.c.dtype, matmul.c.row_stride, false, alignment_of(matmul.c.out)},
      accumulate(matmul.c.accumulate),
      bias(matmul.c.bias != nullptr),
      fast_accumulation(is_fp8() && matmul.fast_accumulation) {}

bool Problem::has_what_fp8_needs() const {
  return depth % kFp8Multiple == 0 && cols % kFp8Multiple == 0 && a.has_aligned_rows() &&
         b.has_aligned_rows() && c.has_aligned_rows() && (!bias || c.dtype == DType::kBF16);
}

std::string Problem::to_string() const {
  return fmt::format("{}x{}x{} {} {}= {} {}{}{}", rows, cols, depth, c.to_string(),
                     accumulate ? "+" : "", a.to_string(), b.to_string(), bias ? " + bias" : "",
                     fast_accumulation ? " fast" : "");
}

// ---- products

template <typename T>
void Product::set(cublasLtMatmulDescAttributes_t attribute, T value) {
  lt_.check(lt_.set_product(product_, attribute, &value, sizeof(value)), "a matrix product");
}

// The matrix is [outer, depth] to us, or [depth, outer].
cublasLtMatrixLayout_t Product::layout(const Problem::Matrix& matrix, int64_t outer,
                                       int64_t depth) {
  cublasLtMatrixLayout_t result = nullptr;
  const int64_t rows = matrix.depth_is_row ? outer : depth;
  const int64_t cols = matrix.depth_is_row ? depth : outer;
  lt_.check(lt_.create_layout(&result, matrix.type(), static_cast<uint64_t>(rows),
                              static_cast<uint64_t>(cols), matrix.row_stride),
            "the layout of a matrix");
  return result;
}

Product::Product(const Problem& problem) : problem_(problem) {
  lt_.check(lt_.create_product(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a matrix product");
  set(CUBLASLT_MATMUL_DESC_TRANSA, problem.b.depth_is_row ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, problem.a.depth_is_row ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (problem.bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(problem.c.dtype));
  }
  if (problem.is_fp8()) {
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(problem.fast_accumulation));
  }
  a_ = layout(problem.a, problem.rows, problem.depth);
  b_ = layout(problem.b, problem.cols, problem.depth);
  c_ = layout(problem.c, problem.rows, problem.cols);
}

Product::~Product() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) lt_.destroy_layout(layout);
  lt_.destroy_product(product_);
}

void Product::set_pointers(const CudaMatmul& matmul) {
  if (problem_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, matmul.c.bias);
  if (!problem_.is_fp8()) return;
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, matmul.b.inverse_scale);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, matmul.a.inverse_scale);
}

std::vector<Algorithm> Product::proposals(cublasLtHandle_t handle) const {
  if (problem_.is_fp8() && !problem_.has_what_fp8_needs()) return {};
  cublasLtMatmulPreference_t preference = nullptr;
  lt_.check(lt_.create_preference(&preference), "a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    lt_.check(lt_.set_preference(preference, attribute, &value, sizeof(value)), "a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
  // Parts of a sum may be kept apart in f32 and added in a fixed order; not in C itself, where
  // they would be rounded to its dtype.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(problem_.b.alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(problem_.a.alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(problem_.c.alignment));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(problem_.c.alignment));
  cublasLtMatmulHeuristicResult_t results[kMaxProposals] = {};
  int count = 0;
  const cublasStatus_t status =
      lt_.propose(handle, product_, b_, a_, c_, c_, preference, kMaxProposals, results, &count);
  lt_.destroy_preference(preference);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) lt_.check(status, "choosing an algorithm");
  std::vector<Algorithm> algorithms;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back({results[i].algo});
  }
  return algorithms;
}

bool Product::can_run(cublasLtHandle_t handle, const Algorithm& algorithm) const {
  cublasLtMatmulHeuristicResult_t result = {};
  return lt_.check_algorithm(handle, product_, b_, a_, c_, c_, &algorithm.opaque, &result) ==
             CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<size_t>(kWorkspaceBytes);
}

cublasStatus_t Product::run(cublasLtHandle_t handle, const CudaMatmul& matmul,
                            const Algorithm& algorithm, float alpha, void* workspace,
                            cudaStream_t stream) const {
  const float beta = problem_.accumulate && !matmul.c.from_zero ? 1.0f : 0.0f;
  return lt_.multiply(handle, product_, &alpha, matmul.b.data, b_, matmul.a.data, a_, &beta,
                      matmul.c.out, c_, matmul.c.out, c_, &algorithm.opaque, workspace,
                      static_cast<size_t>(kWorkspaceBytes), stream);
}

}  // namespace skein::matmul_cuda
