#include <cublasLt.h>

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "skein/ops/cuda/algorithm_cache.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/library_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"
#include "skein/ops/matmul/plain_matmul_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

// What NVIDIA recommends for Hopper; cuBLASLt wants it at a multiple of 256 bytes.
#ifdef SKEIN_CUDA_EMULATED
constexpr int64_t kWorkspaceBytes = int64_t{64} << 10;  // the tests look at every byte
#else
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
#endif
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int kMaxProposals = 8;
// More than any load of a kernel moves. Addresses that differ beyond it are the same problem.
constexpr int kMaxAlignment = 64;

// ---- the library

constexpr const char* kAdvice =
    "install cuBLAS of CUDA 13 (libcublas-13-0 among NVIDIA's packages, or pip's nvidia-cublas) "
    "and put its folder into LD_LIBRARY_PATH";

struct CublasLt {
  Library library{"cuBLASLt", "libcublasLt.so", CUBLAS_VER_MAJOR, kAdvice};
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

  CublasLt() {
    if (version() / 10000 == CUBLAS_VER_MAJOR) return;
    fail(ErrorCode::kUnsupported,
         "the cuBLASLt that is installed is version {}, this build needs {}.x: {}",
         version() / 10000, CUBLAS_VER_MAJOR, kAdvice);
  }

  void check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    fail(ErrorCode::kInternal, "{}: {}", what, status_name(status));
  }
};

const CublasLt& cublas_lt() {
  static const CublasLt* const library = new CublasLt;  // outlives every product
  return *library;
}

// cuBLASLt's own has no name, which nvcc 13.0 stumbles over in containers.
struct Algorithm {
  cublasLtMatmulAlgo_t opaque;
};

cudaDataType_t type_of(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

enum class Fp8 { kNone, kE4M3, kE5M2 };
Fp8 fp8_of(const CudaMatmulOperand& operand) {
  if (!operand.fp8) return Fp8::kNone;
  return operand.fp8->mantissa_bits == kE4M3.mantissa_bits ? Fp8::kE4M3 : Fp8::kE5M2;
}

// ---- a problem: all that an algorithm depends on

int alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  int alignment = kMaxAlignment;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

struct Problem {
  struct Matrix {
    DType dtype;
    int64_t row_stride;
    bool depth_is_row;
    int alignment;
    Fp8 fp8 = Fp8::kNone;
    auto operator<=>(const Matrix&) const = default;

    std::string to_string() const {
      const std::string_view type = fp8 == Fp8::kNone   ? dtype_name(dtype)
                                    : fp8 == Fp8::kE4M3 ? "e4m3"
                                                        : "e5m2";
      return fmt::format("{}{}/{}@{}", type, depth_is_row ? "^T" : "", row_stride, alignment);
    }
    cudaDataType_t type() const {
      return fp8 == Fp8::kNone   ? type_of(dtype)
             : fp8 == Fp8::kE4M3 ? CUDA_R_8F_E4M3
                                 : CUDA_R_8F_E5M2;
    }
    bool has_aligned_rows() const {
      const int64_t bytes = fp8 == Fp8::kNone ? size_of(dtype) : 1;
      return alignment % kCudaFp8Multiple == 0 && row_stride * bytes % kCudaFp8Multiple == 0;
    }
  };
  int64_t rows, cols, depth;
  Matrix a, b, c;
  bool accumulate, bias;
  auto operator<=>(const Problem&) const = default;

  explicit Problem(const CudaMatmul& matmul)
      : rows(matmul.rows),
        cols(matmul.cols),
        depth(matmul.depth),
        a(of(matmul.a)),
        b(of(matmul.b)),
        c{matmul.c.dtype, matmul.c.row_stride, false, alignment_of(matmul.c.out)},
        accumulate(matmul.c.accumulate),
        bias(matmul.c.bias != nullptr) {}

  bool is_fp8() const { return a.fp8 != Fp8::kNone; }
  // Whether cuBLASLt may be asked for it.
  bool has_what_fp8_needs() const {
    return depth % kCudaFp8Multiple == 0 && cols % kCudaFp8Multiple == 0 && a.has_aligned_rows() &&
           b.has_aligned_rows() && c.has_aligned_rows() && (!bias || c.dtype == DType::kBF16);
  }

  std::string to_string() const {
    return fmt::format("{}x{}x{} {} {}= {} {}{}", rows, cols, depth, c.to_string(),
                       accumulate ? "+" : "", a.to_string(), b.to_string(), bias ? " + bias" : "");
  }

 private:
  static Matrix of(const CudaMatmulOperand& operand) {
    return {operand.dtype, operand.row_stride, operand.depth_is_row, alignment_of(operand.data),
            fp8_of(operand)};
  }
};

// ---- a product: the problem in the words of cuBLASLt, and its algorithm once it is chosen

// cuBLASLt stores by columns, so that it is asked for C^T = B^T A^T: its first matrix is our B.
class Product {
 public:
  explicit Product(const Problem& problem) : problem_(problem) {
    lt_.check(lt_.create_product(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a matrix product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, problem.b.depth_is_row ? CUBLAS_OP_N : CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, problem.a.depth_is_row ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (problem.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(problem.c.dtype));
    }
    if (problem.is_fp8()) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{0});
    a_ = layout(problem.a, problem.rows, problem.depth);
    b_ = layout(problem.b, problem.cols, problem.depth);
    c_ = layout(problem.c, problem.rows, problem.cols);
  }
  ~Product() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) lt_.destroy_layout(layout);
    lt_.destroy_product(product_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  const Problem& problem() const { return problem_; }

  // Before anything else of these.
  void set_pointers(const CudaMatmul& matmul) {
    if (problem_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, matmul.c.bias);
    if (!problem_.is_fp8()) return;
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, matmul.b.inverse_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, matmul.a.inverse_scale);
  }

  // In the order in which cuBLASLt expects them to be fast; empty: it has none.
  std::vector<Algorithm> proposals(cublasLtHandle_t handle) const {
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

  bool can_run(cublasLtHandle_t handle, const Algorithm& algorithm) const {
    cublasLtMatmulHeuristicResult_t result = {};
    return lt_.check_algorithm(handle, product_, b_, a_, c_, c_, &algorithm.opaque, &result) ==
               CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= static_cast<size_t>(kWorkspaceBytes);
  }

  cublasStatus_t run(cublasLtHandle_t handle, const CudaMatmul& matmul, const Algorithm& algorithm,
                     float alpha, void* workspace, cudaStream_t stream) const {
    const float beta = problem_.accumulate ? 1.0f : 0.0f;
    return lt_.multiply(handle, product_, &alpha, matmul.b.data, b_, matmul.a.data, a_, &beta,
                        matmul.c.out, c_, matmul.c.out, c_, &algorithm.opaque, workspace,
                        static_cast<size_t>(kWorkspaceBytes), stream);
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    lt_.check(lt_.set_product(product_, attribute, &value, sizeof(value)), "a matrix product");
  }
  // Of what is [outer, depth] to us, or [depth, outer].
  cublasLtMatrixLayout_t layout(const Problem::Matrix& matrix, int64_t outer, int64_t depth) {
    cublasLtMatrixLayout_t result = nullptr;
    const int64_t rows = matrix.depth_is_row ? outer : depth;
    const int64_t cols = matrix.depth_is_row ? depth : outer;
    lt_.check(lt_.create_layout(&result, matrix.type(), static_cast<uint64_t>(rows),
                                static_cast<uint64_t>(cols), matrix.row_stride),
              "the layout of a matrix");
    return result;
  }

  const CublasLt& lt_ = cublas_lt();
  const Problem problem_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

// ---- measuring

class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&start_), "cudaEventCreate");
    check(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Of one of `count` calls, one behind the other.
  template <typename Function>
  float microseconds(int count, const Function& enqueue) {
    check(cudaEventRecord(start_, stream_), "cudaEventRecord");
    for (int i = 0; i < count; ++i) enqueue();
    check(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(stop_), "measuring a matrix product");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return 1000 * milliseconds / static_cast<float>(count);
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

struct Measured {
  Algorithm algorithm;
  float microseconds;
};

// The fastest of `proposals`; none where none runs. C is overwritten; where it accumulates it stays
// as it is: alpha is so small (2^-149) that what is added to an element vanishes when the same
// product is then added in full.
template <typename Run>
std::optional<Measured> fastest_of(const std::vector<Algorithm>& proposals, const Problem& problem,
                                   cudaStream_t stream, const Run& run) {
  constexpr int kRounds = 5;
  constexpr float kRoundMicroseconds = 300;
  constexpr float kHopeless = 1.5f;       // times the best, at first sight
  constexpr float kWorthAChange = 0.98f;  // of the time of cuBLASLt's first proposal
  const float alpha = problem.accumulate ? std::numeric_limits<float>::denorm_min() : 1.0f;
  Timer timer(stream);
  std::vector<Measured> measured;
  float best = std::numeric_limits<float>::infinity();
  for (const Algorithm& algorithm : proposals) {
    if (run(algorithm, alpha) != CUBLAS_STATUS_SUCCESS) continue;  // the first one loads code
    measured.push_back({algorithm, timer.microseconds(2, [&] { run(algorithm, alpha); })});
    best = std::min(best, measured.back().microseconds);
  }
  if (measured.empty()) return std::nullopt;
  const auto is_hopeless = [&](const Measured& one) { return one.microseconds > kHopeless * best; };
  measured.erase(std::remove_if(measured.begin() + 1, measured.end(), is_hopeless), measured.end());
  const int count = static_cast<int>(std::clamp(kRoundMicroseconds / best, 1.0f, 20.0f));
  for (int round = 0; round < kRounds; ++round) {
    for (Measured& one : measured) {
      const float now = timer.microseconds(count, [&] { run(one.algorithm, alpha); });
      one.microseconds = std::min(one.microseconds, now);
    }
  }
  const Measured& fastest = *std::min_element(
      measured.begin(), measured.end(),
      [](const Measured& a, const Measured& b) { return a.microseconds < b.microseconds; });
  return fastest.microseconds < kWorthAChange * measured[0].microseconds ? fastest : measured[0];
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

// A bias as cuBLASLt wants it: of the dtype of C, at an address that is a multiple of 16 bytes.
template <typename From, typename To>
__global__ void copy_bias(const From* from, To* to, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from_float<To>(to_float(from[i]));
}

void run_copy_bias(const MatmulStore& c, void* to, int64_t count, const KernelCall& call) {
  constexpr int kThreads = 256;
  with_type(c.bias_dtype, [&](auto from_type) {
    with_type(c.dtype, [&](auto to_type) {
      using From = decltype(from_type);
      using To = decltype(to_type);
      launch(call, blocks_for(count, kThreads), kThreads, copy_bias<From, To>,
             static_cast<const From*>(c.bias), static_cast<To*>(to), count);
    });
  });
}

char* align_workspace(void* scratch) {
  const auto address = reinterpret_cast<uintptr_t>(scratch);
  return static_cast<char*>(scratch) +
         (kWorkspaceAlignment - address % kWorkspaceAlignment) % kWorkspaceAlignment;
}

}  // namespace

// ---- the products of one GPU

struct CudaMatmuls::State {
  struct Entry {
    explicit Entry(const Problem& problem) : product(problem) {}
    Product product;
    bool chosen = false;
    std::optional<Algorithm> algorithm;  // none: run_plain_matmul
  };

  explicit State(const fs::path& file) : tune(!file.empty()), cache(file) {
    int device = 0, driver = 0;
    cudaDeviceProp properties{};
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    cublas_lt().check(cublas_lt().create(&handle), "cublasLtCreate");
    key = fmt::format("{}, driver {}, cuBLASLt {}", properties.name, driver, cublas_lt().version());
    library = fmt::format("{}, cuBLASLt {}", properties.name, cublas_lt().version());
  }
  ~State() { cublas_lt().destroy(handle); }

  std::optional<Algorithm> usable(const Product& product,
                                  const std::optional<AlgorithmCache::Choice>& choice) {
    Algorithm algorithm = {};
    if (!choice || choice->algorithm.size() != sizeof(algorithm)) return std::nullopt;
    std::memcpy(&algorithm, choice->algorithm.data(), sizeof(algorithm));
    if (!product.can_run(handle, algorithm)) return std::nullopt;
    return algorithm;
  }

  // What the run has adopted.
  std::optional<Algorithm> of_run(const Product& product) {
    const auto found = adopted.find(product.problem().to_string());
    if (found == adopted.end()) return std::nullopt;
    return usable(product, AlgorithmCache::Choice{from_hex(found->second), 0});
  }

  void choose(Entry& entry, const CudaMatmul& matmul, void* workspace, cudaStream_t stream) {
    const Product& product = entry.product;
    entry.algorithm = of_run(product);
    if (entry.algorithm) return;
    const std::string full_key = key + ", " + product.problem().to_string();
    if (tune) entry.algorithm = usable(product, cache.find(full_key));
    if (entry.algorithm) return;
    const std::vector<Algorithm> proposals = product.proposals(handle);
    if (proposals.empty()) {
      warn_of_no_algorithm("cuBLASLt", product.problem().to_string());
      return;
    }
    entry.algorithm = proposals[0];
    if (!tune || proposals.size() == 1 || is_capturing(stream)) return;
    const auto measure = [&]() -> std::optional<AlgorithmCache::Choice> {
      const auto fastest = fastest_of(
          proposals, product.problem(), stream, [&](const Algorithm& algorithm, float alpha) {
            return product.run(handle, matmul, algorithm, alpha, workspace, stream);
          });
      if (!fastest) return std::nullopt;
      return AlgorithmCache::Choice{std::string(reinterpret_cast<const char*>(&fastest->algorithm),
                                                sizeof(fastest->algorithm)),
                                    fastest->microseconds};
    };
    const auto measured = usable(product, cache.find_or_choose(full_key, measure));
    if (measured) entry.algorithm = measured;
  }

  const bool tune;
  AlgorithmCache cache;
  cublasLtHandle_t handle = nullptr;
  std::string key, library;
  std::mutex mutex;
  std::map<Problem, Entry> products;
  std::map<std::string, std::string> adopted;  // AlgorithmChoices::by_problem
};

// A product whose algorithm is chosen, and its operands as cuBLASLt wants them.
struct CudaMatmuls::Ready {
  CudaMatmul matmul;
  char* workspace;
  State::Entry& entry;
  std::unique_lock<std::mutex> lock;  // of the state
};

CudaMatmuls::CudaMatmuls(const fs::path& cache_file)
    : state_(std::make_unique<State>(cache_file)) {}
CudaMatmuls::~CudaMatmuls() = default;

CudaMatmuls::Ready CudaMatmuls::make_ready(const CudaMatmul& matmul, void* scratch, void* stream) {
  char* const workspace = align_workspace(scratch);
  const KernelCall call{.stream = stream};
  CudaMatmul ready = matmul;
  if (ready.c.bias != nullptr &&
      (ready.c.bias_dtype != ready.c.dtype || alignment_of(ready.c.bias) < 16)) {
    ready.c.bias = workspace + kWorkspaceBytes;
    run_copy_bias(matmul.c, workspace + kWorkspaceBytes, matmul.cols, call);
  }
  State& state = *state_;
  std::unique_lock<std::mutex> lock(state.mutex);
  const Problem problem(ready);
  auto found = state.products.find(problem);
  if (found == state.products.end()) found = state.products.try_emplace(problem, problem).first;
  State::Entry& entry = found->second;
  if (!entry.chosen && state.tune && !is_capturing(stream_of(call))) {
    // What was enqueued before may wait for ranks that wait for this one's lock on the cache.
    lock.unlock();
    check(cudaStreamSynchronize(stream_of(call)), "an op that was started before");
    lock.lock();
  }
  entry.product.set_pointers(ready);
  if (!entry.chosen) state.choose(entry, ready, workspace, stream_of(call));
  entry.chosen = true;
  return {ready, workspace, entry, std::move(lock)};
}

void CudaMatmuls::choose(const CudaMatmul& matmul, void* scratch, void* stream) {
  if (matmul.rows > 0 && matmul.cols > 0) make_ready(matmul, scratch, stream);
}

void CudaMatmuls::run(const CudaMatmul& matmul, void* scratch, void* stream) {
  if (matmul.rows == 0 || matmul.cols == 0) return;
  const KernelCall call{.stream = stream};
  const Ready ready = make_ready(matmul, scratch, stream);
  State::Entry& entry = ready.entry;
  if (entry.algorithm) {
    const cublasStatus_t status = entry.product.run(state_->handle, ready.matmul, *entry.algorithm,
                                                    1.0f, ready.workspace, stream_of(call));
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) return cublas_lt().check(status, "cublasLtMatmul");
    warn_of_no_algorithm("cuBLASLt", entry.product.problem().to_string());
    entry.algorithm.reset();
  }
  run_plain_matmul(ready.matmul, call);
}

AlgorithmChoices CudaMatmuls::choices() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  AlgorithmChoices choices{state_->library, {}};
  for (const auto& [problem, entry] : state_->products) {
    if (!entry.algorithm) continue;
    const auto* bytes = reinterpret_cast<const char*>(&*entry.algorithm);
    choices.by_problem[problem.to_string()] = to_hex({bytes, sizeof(*entry.algorithm)});
  }
  return choices;
}

void CudaMatmuls::adopt(const AlgorithmChoices& choices) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (const auto& [problem, algorithm] : choices.by_problem) {
    state_->adopted[problem] = algorithm;
  }
  for (auto& [problem, entry] : state_->products) {
    if (const auto algorithm = state_->of_run(entry.product)) entry.algorithm = algorithm;
  }
}

int64_t cuda_matmul_scratch_bytes(int64_t bias_cols) {
  return kWorkspaceAlignment + kWorkspaceBytes + bias_cols * size_of(DType::kF32);
}

namespace {

// Of the current GPU; never destroyed, as the driver may be gone before it.
CudaMatmuls& products_of_device() {
  static std::mutex mutex;
  static auto* const of_devices = new std::map<int, CudaMatmuls>;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = of_devices->find(device);
  if (found != of_devices->end()) return found->second;
  const char* tune = std::getenv("SKEIN_TUNE");
  const bool off = tune != nullptr && std::strcmp(tune, "off") == 0;
  const fs::path file =
      off ? fs::path() : AlgorithmCache::default_file("cublaslt-algorithms.jsonl");
  return of_devices->try_emplace(device, file).first->second;
}

thread_local bool only_choose = false;

}  // namespace

OnlyChooseCudaMatmuls::OnlyChooseCudaMatmuls() { only_choose = true; }
OnlyChooseCudaMatmuls::~OnlyChooseCudaMatmuls() { only_choose = false; }

void run_cuda_matmul(const CudaMatmul& matmul, void* scratch, void* stream) {
  CudaMatmuls& products = products_of_device();
  if (only_choose) return products.choose(matmul, scratch, stream);
  products.run(matmul, scratch, stream);
}

AlgorithmChoices chosen_algorithms() { return products_of_device().choices(); }
void adopt_algorithms(const AlgorithmChoices& choices) { products_of_device().adopt(choices); }

}  // namespace skein
