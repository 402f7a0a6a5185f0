// The devices, the kernels that they run, and errors.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "runtime_state.h"

namespace cuda_emulation {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

// CUDA_EMULATION_FAIL_KERNEL=n: the nth kernel of the process reads where it may not; with
// CUDA_EMULATION_FAIL_AFTER=FILE the nth that begins when that file is there.
bool fails_now() {
  static const char* const file = std::getenv("CUDA_EMULATION_FAIL_AFTER");
  static bool counts = file == nullptr;
  if (!counts && !(counts = access(file, F_OK) == 0)) return false;
  static int64_t left = [] {
    const char* text = std::getenv("CUDA_EMULATION_FAIL_KERNEL");
    return text != nullptr ? std::strtoll(text, nullptr, 10) : -1;
  }();
  return left > 0 && --left == 0;
}

constexpr size_t kMemoryOfAnyKernel = size_t{48} << 10, kMostMemory = size_t{227} << 10;
constexpr size_t kMemoryWindow = size_t{256} << 10;  // as warpgroup_emulation.h has it
std::map<const void*, size_t>& allowed_memory() {
  static std::map<const void*, size_t> of_kernels;
  return of_kernels;
}
size_t granted_memory = 0;  // to the kernel that runs
uint64_t num_waits = 0;     // of its threads, for the kernel ahead of it

}  // namespace

thread_local int current_device = 0;
cudaError_t broken = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t allow_dynamic_memory(const void* kernel, int bytes) {
  const Lock lock(device_mutex());
  if (bytes < 0 || static_cast<size_t>(bytes) > kMostMemory) return result(cudaErrorInvalidValue);
  allowed_memory()[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}
void* dynamic_memory(size_t bytes) {
  static void* const memory = std::aligned_alloc(kMemoryWindow, kMemoryWindow);
  if (bytes > granted_memory) die("a kernel uses more shared memory than its launch gave");
  return memory;
}

void note_wait_for_previous_kernel() { ++num_waits; }

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                           std::function<void()> thread) {
  const dim3 grid = config.gridDim, threads = config.blockDim;
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  if (count == 0 || count > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
    return result(cudaErrorInvalidValue);
  }
  const size_t memory = config.dynamicSmemBytes;
  if (memory > kMemoryOfAnyKernel) {
    const Lock lock(device_mutex());
    if (memory > allowed_memory()[kernel]) return result(cudaErrorInvalidValue);
  }
  const bool starts_early = config.numAttrs > 0;
  return enqueue(config.stream, [=, thread = std::move(thread)] {
    if (fails_now()) {
      broken = cudaErrorIllegalAddress;
      return;
    }
    gridDim = grid;
    blockDim = threads;
    granted_memory = memory;
    num_waits = 0;
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          if (memory > 0) std::memset(dynamic_memory(memory), 0xff, memory);
          run_block(thread, static_cast<unsigned>(count));
        }
      }
    }
    if (starts_early && num_waits != count * grid.x * grid.y * grid.z) {
      die("a kernel that starts early has threads that do not wait for the one ahead");
    }
  });
}

}  // namespace cuda_emulation

using namespace cuda_emulation;  // NOLINT(google-build-using-namespace)

cudaError_t cudaGetDeviceCount(int* count) {
  const char* text = std::getenv("CUDA_EMULATION_DEVICES");
  *count = text != nullptr ? std::atoi(text) : 1;
  return *count > 0 ? cudaSuccess : result(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return result(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "emulated on the CPU");
  properties->totalGlobalMem = device_bytes();
  properties->sharedMemPerBlock = size_t{48} << 10;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, device);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kMostMemory);
      break;
  }
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    default:
      return "cudaErrorInvalidValue";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
