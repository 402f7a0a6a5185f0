// The part of the CUDA runtime that Skein uses, on the CPU, so that kernels and the code around
// them are tested where there is no GPU: the same sources, compiled as C++ against this folder.
//
// Kernels  run block after block, each thread a fiber: barriers and warp shuffles really wait. The
//          order of threads is shuffled, so that a missing barrier gives wrong results here too.
//          Thread blocks of one kernel never overlap.
// Streams  are lazy: what is enqueued runs when somebody waits for it, so that host code that does
//          not wait sees memory as it was. Pageable memory is copied at once, as CUDA does.
// Capture  what is enqueued on any stream while one captures becomes the graph; calls that CUDA
//          forbids meanwhile (cudaMalloc, waiting, copies of pageable memory) fail, and the graph
//          with them.
// Devices  as many as CUDA_EMULATION_DEVICES says. Threads may each have one of their own, and wait
//          for each other's streams (nccl.h); kernels of all run one at a time.
// Not here memory models, timing, inline PTX: a pass here says that the logic is right, not that
//          the compiled kernel is.
//
// Names, values and behaviour: CUDA Runtime API reference, version 13.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static  // one block runs at a time
#define __align__(n) alignas(n)

// ---- vector types ----
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}  // NOLINT
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}                                   // NOLINT
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- inside a kernel ----
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace cuda_emulation {
void wait_for_block();
void wait_for_warp();
// mbarrier: init, arrive, try_wait.parity until it is true.
void init_barrier(const void* at, int expected);
void arrive_at_barrier(const void* at);
void wait_at_barrier(const void* at, int odd);
// Every lane gives 8 bytes and reads those of `source`; lanes that have ended give zero.
uint64_t exchange(uint64_t mine, int source);
int lane();
int lanes_in_warp();
// The block's dynamic shared memory, NaNs when it begins: that of the launch, which must be enough.
void* dynamic_memory(size_t bytes);
// Every thread of a kernel that may start before the one ahead of it has ended calls this.
void note_wait_for_previous_kernel();

template <typename T>
T shuffle(T value, int source) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(bits, source);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace cuda_emulation

inline void __syncthreads() { cuda_emulation::wait_for_block(); }
inline void __syncwarp(unsigned = 0xffffffffu) { cuda_emulation::wait_for_warp(); }
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  const int lane = cuda_emulation::lane();
  return cuda_emulation::shuffle(value, lane / width * width + (source & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  const int lane = cuda_emulation::lane(), other = lane ^ mask;
  return cuda_emulation::shuffle(value, other / width > lane / width ? lane : other);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
  const int lane = cuda_emulation::lane(), other = lane + static_cast<int>(delta);
  return cuda_emulation::shuffle(value, other / width == lane / width ? other : lane);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32) {
  const int lane = cuda_emulation::lane(), other = lane - static_cast<int>(delta);
  return cuda_emulation::shuffle(value, other >= lane / width * width ? other : lane);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned ballot = 0;
  for (int i = 0; i < 32; ++i) {
    const unsigned vote = cuda_emulation::shuffle<unsigned>(predicate != 0, i);
    ballot |= (i < cuda_emulation::lanes_in_warp() ? vote : 0u) << i;
  }
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <typename T>
T __ldg(const T* from) {
  return *from;
}
template <typename T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T old = *at;
  *at = old + value;
  return old;
}
template <typename T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T old = *at;
  *at = std::max(old, value);
  return old;
}
template <typename T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}

inline float normcdff(float x) {
  return static_cast<float>(0.5 * std::erfc(-0.70710678118654752 * static_cast<double>(x)));
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
// Byte i of the result is the one of eight (a's, then b's) that nibble i of `selector` says.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned from = selector >> 4 * i & 7;
    result |= static_cast<unsigned>(bytes >> 8 * from & 0xff) << 8 * i;
  }
  return result;
}
inline int __ffs(int x) { return __builtin_ffs(x); }

// ---- errors ----
enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined = 904,
};
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

// ---- the device ----
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int major, minor;
  int multiProcessorCount;
  int maxThreadsPerMultiProcessor;
  int l2CacheSize;
  int pciBusID, pciDeviceID, pciDomainID;
};
enum cudaDeviceAttr : int {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceSynchronize();

// ---- memory ----
enum cudaMemcpyKind : int {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2;
using cudaStream_t = struct CudaEmulationStream*;
using cudaEvent_t = struct CudaEmulationEvent*;
using cudaGraph_t = struct CudaEmulationGraph*;
using cudaGraphExec_t = struct CudaEmulationGraphExec*;

cudaError_t cudaMalloc(void** memory, size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr);

// ---- streams, events, graphs ----
inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1,
                          cudaEventDisableTiming = 2;
enum cudaStreamCaptureMode : int {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus : int {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);  // NOLINT(google-runtime-int)
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);

// ---- launches ----
enum cudaLaunchAttributeID : int { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace cuda_emulation {
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                           std::function<void()> thread);
cudaError_t allow_dynamic_memory(const void* kernel, int bytes);
}  // namespace cuda_emulation

enum cudaFuncAttribute : int { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <typename... Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute, int value) {
  return cuda_emulation::allow_dynamic_memory(reinterpret_cast<const void*>(kernel), value);
}

template <typename... Params, typename... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...),
                               Args&&... args) {
  // As CUDA does, arguments are copied at the launch.
  std::tuple<std::remove_cv_t<Params>...> copies(std::forward<Args>(args)...);
  return cuda_emulation::enqueue_kernel(*config, reinterpret_cast<const void*>(kernel),
                                        [kernel, copies]() { std::apply(kernel, copies); });
}
