#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/machine/environment.h"
#include "skein/base/threads/mutex.h"
#include "skein/ops/cuda/algorithm_cache.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/matmul/cublas_lt_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"
#include "skein/ops/matmul/plain_matmul_cuda.h"

namespace skein {
namespace {

using namespace cuda;         // NOLINT(google-build-using-namespace)
using namespace matmul_cuda;  // NOLINT(google-build-using-namespace)

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

  // The time of one of `count` calls that run one after another.
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

// The fastest of `proposals`; none where none runs. C is overwritten. Where the product is added to
// C, C stays as it is: alpha is so small (2^-149) that the sum rounds to what C held before.
template <typename Run>
std::optional<Measured> fastest_of(const std::vector<Algorithm>& proposals, const Problem& problem,
                                   cudaStream_t stream, const Run& run) {
  constexpr int kRounds = 5;
  constexpr float kRoundMicroseconds = 300;
  constexpr float kHopeless = 1.5f;       // times the best of the first measurement
  constexpr float kWorthAChange = 0.98f;  // of the time of cuBLASLt's first proposal
  const float alpha = problem.accumulate ? std::numeric_limits<float>::denorm_min() : 1.0f;
  Timer timer(stream);
  std::vector<Measured> measured;
  float best = std::numeric_limits<float>::infinity();
  for (const Algorithm& algorithm : proposals) {
    if (run(algorithm, alpha) != CUBLAS_STATUS_SUCCESS) continue;  // its first run loads code
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
  wait_for_previous_kernel();
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
    std::optional<Algorithm> algorithm;  // none: run_plain_matmul multiplies
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
                                  const std::optional<AlgorithmCache::Choice>& choice) const {
    Algorithm algorithm = {};
    if (!choice || choice->algorithm.size() != sizeof(algorithm)) return std::nullopt;
    std::memcpy(&algorithm, choice->algorithm.data(), sizeof(algorithm));
    if (!product.can_run(handle, algorithm)) return std::nullopt;
    return algorithm;
  }

  // The algorithm that the run has adopted.
  std::optional<Algorithm> of_run(const Product& product) SKEIN_REQUIRES(mutex) {
    const auto found = adopted.find(product.problem().to_string());
    if (found == adopted.end()) return std::nullopt;
    return usable(product, AlgorithmCache::Choice{from_hex(found->second), 0});
  }

  // Whether its algorithm would be measured now.
  bool must_measure(const Problem& problem, cudaStream_t stream) {
    const Lock lock(mutex);
    const auto found = products.find(problem);
    return tune && (found == products.end() || !found->second.chosen) && !is_capturing(stream);
  }

  // The entry of a product, with its algorithm chosen and its addresses set.
  Entry& entry_of(const Problem& problem, const CudaMatmul& matmul, void* workspace,
                  cudaStream_t stream) SKEIN_REQUIRES(mutex) {
    auto found = products.find(problem);
    if (found == products.end()) found = products.try_emplace(problem, problem).first;
    Entry& entry = found->second;
    entry.product.set_pointers(matmul);
    if (!entry.chosen) choose(entry, matmul, workspace, stream);
    entry.chosen = true;
    return entry;
  }

  void choose(Entry& entry, const CudaMatmul& matmul, void* workspace, cudaStream_t stream)
      SKEIN_REQUIRES(mutex) {
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
  cublasLtHandle_t handle = nullptr;
  std::string key, library;
  Mutex mutex;
  AlgorithmCache cache SKEIN_GUARDED_BY(mutex);
  std::map<Problem, Entry> products SKEIN_GUARDED_BY(mutex);
  // AlgorithmChoices::by_problem of what the run has adopted.
  std::map<std::string, std::string> adopted SKEIN_GUARDED_BY(mutex);
};

// A product with its operands as cuBLASLt wants them.
struct CudaMatmuls::Ready {
  CudaMatmul matmul;
  Problem problem;
  char* workspace;
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
  const Problem problem(ready);
  // Measuring locks the cache, for which other ranks wait. What was enqueued before may in turn
  // wait for those ranks, so that it must end first.
  if (state_->must_measure(problem, stream_of(call))) {
    check(cudaStreamSynchronize(stream_of(call)), "an op that was started before");
  }
  return {ready, problem, workspace};
}

void CudaMatmuls::choose(const CudaMatmul& matmul, void* scratch, void* stream) {
  if (matmul.rows == 0 || matmul.cols == 0) return;
  const Ready ready = make_ready(matmul, scratch, stream);
  State& state = *state_;
  const Lock lock(state.mutex);
  state.entry_of(ready.problem, ready.matmul, ready.workspace, static_cast<cudaStream_t>(stream));
}

void CudaMatmuls::run(const CudaMatmul& matmul, void* scratch, void* stream) {
  if (matmul.rows == 0 || matmul.cols == 0) return;
  const KernelCall call{.stream = stream};
  const Ready ready = make_ready(matmul, scratch, stream);
  State& state = *state_;
  const Lock lock(state.mutex);
  State::Entry& entry =
      state.entry_of(ready.problem, ready.matmul, ready.workspace, stream_of(call));
  if (entry.algorithm) {
    const cublasStatus_t status = entry.product.run(state.handle, ready.matmul, *entry.algorithm,
                                                    1.0f, ready.workspace, stream_of(call));
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) return cublas_lt().check(status, "cublasLtMatmul");
    warn_of_no_algorithm("cuBLASLt", entry.product.problem().to_string());
    entry.algorithm.reset();
  }
  run_plain_matmul(ready.matmul, call);
}

AlgorithmChoices CudaMatmuls::choices() const {
  State& state = *state_;
  const Lock lock(state.mutex);
  AlgorithmChoices choices{state.library, {}};
  for (const auto& [problem, entry] : state.products) {
    if (!entry.algorithm) continue;
    const auto* bytes = reinterpret_cast<const char*>(&*entry.algorithm);
    choices.by_problem[problem.to_string()] = to_hex({bytes, sizeof(*entry.algorithm)});
  }
  return choices;
}

void CudaMatmuls::adopt(const AlgorithmChoices& choices) {
  State& state = *state_;
  const Lock lock(state.mutex);
  for (const auto& [problem, algorithm] : choices.by_problem) {
    state.adopted[problem] = algorithm;
  }
  for (auto& [problem, entry] : state.products) {
    if (const auto algorithm = state.of_run(entry.product)) entry.algorithm = algorithm;
  }
}

namespace {

struct ProductsOfDevices {
  Mutex mutex;
  std::map<int, CudaMatmuls> by_device SKEIN_GUARDED_BY(mutex);
};

CudaMatmuls& products_of_device() {
  // Never destroyed: the driver may be gone before static objects are.
  static auto* const all = new ProductsOfDevices;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const Lock lock(all->mutex);
  const auto found = all->by_device.find(device);
  if (found != all->by_device.end()) return found->second;
  const fs::path file = is_switched_on("SKEIN_TUNE")
                            ? AlgorithmCache::default_file("cublaslt-algorithms.jsonl")
                            : fs::path();
  return all->by_device.try_emplace(device, file).first->second;
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
