#include "skein/runtime/cuda/cuda_device.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "skein/base/machine/check_cuda.h"
#include "skein/base/machine/environment.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/runtime/host_memory.h"

#ifndef SKEIN_CUDA_ARCHITECTURES
#define SKEIN_CUDA_ARCHITECTURES 90
#endif

namespace skein {

using cuda::check;

namespace {

constexpr int64_t kStagingBytes = int64_t{64} << 20;
constexpr int64_t kInputRingBytes = int64_t{4} << 20;  // on the GPU as well

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// SKEIN_GRAPHS=off in the environment tells a fault of a graph from one of its kernels.
bool graphs_are_wanted() {
  if (is_switched_on("SKEIN_GRAPHS")) return true;
  static std::once_flag told;
  std::call_once(told, [] {
    log::warn("SKEIN_GRAPHS=off: every kernel is started alone, not as part of a CUDA graph");
  });
  return false;
}

// Fails with one clear line where there is no GPU to run on.
void check_driver() {
  int count = 0, driver = 0, toolkit = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return;
  cudaGetLastError();
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&toolkit);
  if (driver == 0) {
    fail(ErrorCode::kUnsupported,
         "device.kind is 'cuda', and there is no NVIDIA driver here: install one for CUDA {} or "
         "later (in a container, start it with --gpus all), or use device.kind = \"cpu\"",
         version_text(toolkit));
  }
  if (driver < toolkit) {
    fail(ErrorCode::kUnsupported,
         "the NVIDIA driver is made for CUDA {}, this build needs {} or later: update the driver",
         version_text(driver), version_text(toolkit));
  }
  fail(ErrorCode::kUnsupported,
       "device.kind is 'cuda', and the driver shows no GPU ({}): look at nvidia-smi and at "
       "CUDA_VISIBLE_DEVICES, or use device.kind = \"cpu\"",
       cudaGetErrorString(error));
}

// Fails where the GPU cannot run this build's kernels; returns what it is.
std::string check_device(int index) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (index >= count) {
    fail(ErrorCode::kUnsupported,
         "this rank needs GPU {}, and there are {}: start at most {} workers a node, or look at "
         "CUDA_VISIBLE_DEVICES",
         index, count, count);
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  const int capability = properties.major * 10 + properties.minor;
  if (capability < SKEIN_CUDA_ARCHITECTURES) {
    fail(ErrorCode::kUnsupported,
         "GPU {} ({}) has compute capability {}.{}, this build has kernels for {}.{} and later: "
         "build with cmake -DSKEIN_CUDA_ARCHITECTURES={}",
         index, properties.name, properties.major, properties.minor, SKEIN_CUDA_ARCHITECTURES / 10,
         SKEIN_CUDA_ARCHITECTURES % 10, capability);
  }
  return fmt::format("cuda {} {}.{}", properties.name, properties.major, properties.minor);
}

class GraphRecording final : public Recording {
 public:
  GraphRecording(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "cudaGraphInstantiate");
  }
  ~GraphRecording() override { cudaGraphExecDestroy(executable_); }
  void replay() override { check(cudaGraphLaunch(executable_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

int num_cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

// The driver reads these when it starts. Streams of groups of ranks must not share the GPU's queues
// with others either.
void expect_several_cuda_ranks() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

CudaDevice::CudaDevice(const DeviceOptions& options, KernelTable kernels)
    : kernels_(std::move(kernels)), index_(options.index), check_ops_(options.check_ops) {
  check_driver();
  arithmetic_ = check_device(index_);
  const cudaError_t opened = cudaSetDevice(index_);
  if (opened == cudaErrorMemoryAllocation) {
    fail(ErrorCode::kNoSpace,
         "GPU {} has too little memory left to begin on: nvidia-smi shows which processes hold it",
         index_);
  }
  check(opened, "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  progress_ = std::make_unique<StreamProgress>();
  readers_ = std::make_unique<Readers>(index_);
  staging_ = std::make_unique<StagingRing>(kStagingBytes, nullptr);
  inputs_ = std::make_unique<StagingRing>(
      kInputRingBytes, allocate_unfilled(kInputRingBytes, "bytes on their way to the GPU"));
  wait(record_event());  // so that later ones have one before them
}

CudaDevice::~CudaDevice() {
  staging_.reset();
  inputs_.reset();
  for (const RecordedEvent& recorded : recorded_events_) cudaEventDestroy(recorded.event);
  for (const cudaEvent_t event : free_events_) cudaEventDestroy(event);
  cudaEventDestroy(completed_event_);
  for (const cudaEvent_t event : timed_events_) cudaEventDestroy(event);
  readers_.reset();
  cudaStreamDestroy(stream_);
}

void* CudaDevice::allocate(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  void* memory = allocate_unfilled(bytes, what);
  fill_zero(memory, bytes);
  return memory;
}

std::optional<DeviceMemory> CudaDevice::own_memory() const {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return DeviceMemory{static_cast<int64_t>(total), static_cast<int64_t>(free)};
}

void CudaDevice::require_room(int64_t device_bytes, int64_t host_bytes) {
  const DeviceMemory own = own_memory().value();
  if (device_bytes > own.free_bytes)
    refuse(device_bytes, "the program", own.free_bytes, own.total_bytes);
  require_host_memory(host_bytes, "what the program keeps in host memory");
}

void CudaDevice::refuse(int64_t bytes, const std::string& what, int64_t free_bytes,
                        int64_t total_bytes) const {
  fail(
      ErrorCode::kNoSpace,
      "{} needs {}, and GPU {} has {} of its {} left: `skein plan --hardware FILE` says what would "
      "make a training run fit; nvidia-smi shows what other processes hold",
      what, format_bytes(bytes), index_, format_bytes(free_bytes), format_bytes(total_bytes));
}

void* CudaDevice::allocate_unfilled(int64_t bytes, const std::string& what) {
  const DeviceMemory own = own_memory().value();
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    refuse(bytes, what, own.free_bytes, own.total_bytes);
  }
  check(error, "cudaMalloc");
  return memory;
}

void CudaDevice::release(void* memory, int64_t) { cudaFree(memory); }

// Data sheets of the SXM boards: dense, tensor cores for bf16, none for fp32.
std::optional<double> CudaDevice::peak_flops(DType dtype) const {
  const bool is_bf16 = dtype == DType::kBF16;
  for (const char* hopper : {"H100", "H200", "GH200"}) {
    if (arithmetic_.find(hopper) != arithmetic_.npos) return is_bf16 ? 989.4e12 : 66.9e12;
  }
  if (arithmetic_.find("A100") != arithmetic_.npos) return is_bf16 ? 312e12 : 19.5e12;
  return std::nullopt;
}

void* CudaDevice::allocate_on_host(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  const cudaError_t error =
      cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocPortable);
  if (error != cudaSuccess) {
    cudaGetLastError();
    fail(ErrorCode::kNoSpace,
         "{} needs {} of pinned host memory, which the system does not give ({}): look at the free "
         "memory and at `ulimit -l`, or set what [memory] offloads to false",
         what, format_bytes(bytes), cudaGetErrorString(error));
  }
  std::memset(memory, 0, static_cast<size_t>(bytes));
  return memory;
}

void CudaDevice::release_on_host(void* memory, int64_t) { cudaFreeHost(memory); }

// What a step reads is small, and goes ahead of the step. Large uploads happen where the GPU has
// nothing else to do.
void CudaDevice::upload(void* device, const void* host, int64_t bytes) {
  StagingRing& ring = bytes <= inputs_->largest_piece() ? *inputs_ : *staging_;
  ring.upload(device, host, bytes, stream_);
}

void CudaDevice::start_copy(void* to, const void* from, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
        "a copy within the device");
}

void CudaDevice::fill_zero(void* device, int64_t bytes) {
  check(cudaMemsetAsync(device, 0, static_cast<size_t>(bytes), stream_), "cudaMemset");
}

std::string CudaDevice::describe(cudaError_t error) const {
  const std::string what =
      fmt::format("GPU {}: {} ({})", index_, cudaGetErrorString(error), cudaGetErrorName(error));
  if (check_ops_) return what;  // who waits knows the op
  return what + progress_->text() +
         ": run again with device.check_ops = true to see which op it is";
}

// Such an error belongs to something that was started before.
void CudaDevice::check_ran(cudaError_t error) const {
  if (error != cudaSuccess) fail(ErrorCode::kInternal, "{}", describe(error));
}

std::string CudaDevice::failure() const {
  if (recording_ || check_ops_) return {};
  const cudaError_t error = cudaStreamQuery(stream_);
  return error == cudaSuccess || error == cudaErrorNotReady ? "" : describe(error);
}

void CudaDevice::synchronize() { check_ran(cudaStreamSynchronize(stream_)); }

void CudaDevice::download(void* host, const void* device, int64_t bytes) {
  check_ran(readers_->read(host, device, bytes, stream_));
}

// A product that takes a large GPU a millisecond takes one of few multiprocessors, as the emulation
// has, too long.
int64_t CudaDevice::ceiling_size() const {
  constexpr int kFewMultiprocessors = 8;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, index_),
        "the number of multiprocessors");
  return multiprocessors > kFewMultiprocessors ? 8192 : 64;
}

void CudaDevice::download_later(void* host, const void* device, int64_t bytes) {
  check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_),
        "a download");
}

int64_t CudaDevice::record_event() {
  if (free_events_.empty()) {
    free_events_.emplace_back();
    check(cudaEventCreateWithFlags(&free_events_.back(), cudaEventBlockingSync), "cudaEventCreate");
  }
  check(cudaEventRecord(free_events_.back(), stream_), "cudaEventRecord");
  recorded_events_.push_back({++last_event_, free_events_.back(), Clock::now()});
  free_events_.pop_back();
  return last_event_;
}

Clock::time_point CudaDevice::wait(int64_t event) {
  while (!recorded_events_.empty() && recorded_events_.front().number <= event) {
    const RecordedEvent next = recorded_events_.front();
    const bool is_past = cudaEventQuery(next.event) == cudaSuccess;
    cudaGetLastError();
    check_ran(cudaEventSynchronize(next.event));
    const Clock::time_point now = Clock::now();
    // Where the host does not have to wait, the GPU knows how long ago it was.
    if (is_past && completed_event_ != nullptr) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, completed_event_, next.event),
            "cudaEventElapsedTime");
      const std::chrono::duration<double, std::milli> elapsed(milliseconds);
      completed_at_ =
          std::clamp(completed_at_ + std::chrono::duration_cast<Clock::duration>(elapsed),
                     next.recorded_at, now);
    } else {
      completed_at_ = now;
    }
    if (completed_event_ != nullptr) free_events_.push_back(completed_event_);
    completed_event_ = next.event;
    recorded_events_.pop_front();
  }
  return completed_at_;
}

int64_t CudaDevice::record_time() {
  if (num_timed_events_ == timed_events_.size()) {
    timed_events_.emplace_back();
    check(cudaEventCreateWithFlags(&timed_events_.back(), cudaEventDefault), "cudaEventCreate");
  }
  check(cudaEventRecord(timed_events_[num_timed_events_], stream_), "cudaEventRecord");
  return static_cast<int64_t>(num_timed_events_++);
}

double CudaDevice::seconds_at(int64_t time) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, timed_events_[0],
                             timed_events_[static_cast<size_t>(time)]),
        "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

void CudaDevice::begin_range(const std::string& name) { nvtxRangePushA(name.c_str()); }
void CudaDevice::end_range() { nvtxRangePop(); }

std::unique_ptr<Recording> CudaDevice::record(const std::function<void()>& steps) {
  if (!graphs_are_wanted()) return nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  recording_ = true;
  try {
    steps();
    recording_ = false;
  } catch (...) {
    recording_ = false;
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "recording the steps as a CUDA graph");
  return std::make_unique<GraphRecording>(graph, stream_);
}

}  // namespace skein
