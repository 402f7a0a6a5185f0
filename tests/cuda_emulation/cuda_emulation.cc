#include "cuda_emulation.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

// ---- streams ----

using Work = std::function<void()>;
using cuda_emulation::Step;

struct CudaEmulationStream {
  int device = 0;
  std::deque<Step> queue;
  int64_t enqueued = 0, done = 0;
  bool running = false;
  int64_t stuck_at = -1;  // of num_changes: nothing has happened since that could help it on
};
// What a stream of a capture is behind: so many works of each stream.
using Behind = std::map<cudaStream_t, int64_t>;
struct CudaEmulationEvent {
  cudaStream_t stream = nullptr;
  int64_t position = 0;  // of its stream's queue that it stands behind
  std::chrono::steady_clock::time_point time;
  bool recorded = false;
  int64_t capture = 0;  // in which it was recorded last; 0: in none
  Behind behind;
};
struct CudaEmulationGraph {
  std::vector<Work> works;
};
struct CudaEmulationGraphExec {
  std::vector<Work> works;
};

namespace {

// One caller at a time, whatever its device: kernels share the variables above. Threads that wait
// for each other's streams hold it once.
std::recursive_mutex mutex;
std::condition_variable_any changed;  // something was enqueued, ran or was given up
int64_t num_changes = 0;
std::set<cudaStream_t> streams;
thread_local int current_device = 0;
std::map<const char*, size_t> device_memory, pinned_memory;  // by address
thread_local CudaEmulationGraph* capture = nullptr;
thread_local cudaStream_t capturing_stream = nullptr;
thread_local int64_t capture_number = 0, num_captures = 0;  // 0: none
thread_local std::map<cudaStream_t, Behind> captured;       // the streams that take part
thread_local bool capture_failed = false;
thread_local cudaError_t last_error = cudaSuccess;

// CUDA_EMULATION_FAIL_KERNEL=n: the nth kernel of the process reads where it may not. As on a GPU
// nothing runs after it, and every call that looks says so.
cudaError_t broken = cudaSuccess;
bool fails_now() {
  static int64_t left = [] {
    const char* text = std::getenv("CUDA_EMULATION_FAIL_KERNEL");
    return text != nullptr ? std::strtoll(text, nullptr, 10) : -1;
  }();
  return left > 0 && --left == 0;
}

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
// Of a call that may not happen while a stream captures.
cudaError_t forbidden() {
  capture_failed = true;
  return result(cudaErrorStreamCaptureUnsupported);
}

size_t device_bytes() {
  const char* text = std::getenv("CUDA_EMULATION_MEMORY");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : size_t{8} << 30;
}
size_t used_bytes() {
  size_t used = 0;
  for (const auto& [memory, bytes] : device_memory) used += bytes;
  return used;
}
bool inside(const std::map<const char*, size_t>& memory, const void* at) {
  auto found = memory.upper_bound(static_cast<const char*>(at));
  if (found == memory.begin()) return false;
  --found;
  return static_cast<const char*>(at) < found->first + found->second;
}
bool is_pageable(const void* at) {
  return !inside(device_memory, at) && !inside(pinned_memory, at);
}

// Runs what comes next on the stream, if it can; what it waits for may get on instead. Whether
// anything happened.
bool advance(CudaEmulationStream& stream) {
  if (stream.running || stream.queue.empty() || stream.stuck_at == num_changes) return false;
  const int64_t before = num_changes;
  stream.running = true;
  const bool done = stream.queue.front()();
  stream.running = false;
  if (done) {
    stream.queue.pop_front();
    ++stream.done;
    cuda_emulation::note_change();
  }
  if (num_changes == before) stream.stuck_at = before;
  return num_changes != before;
}

// What waits for another thread of the host, which has a device of its own, lets it have the mutex.
void run_until(CudaEmulationStream& stream, int64_t position) {
  constexpr auto kPatience = std::chrono::minutes(2);
  while (stream.done < position && !stream.queue.empty()) {
    if (advance(stream)) continue;
    if (changed.wait_for(mutex, kPatience) == std::cv_status::timeout) {
      cuda_emulation::die("streams wait for each other, or for a thread that never comes");
    }
  }
}
void run_all(CudaEmulationStream& stream) { run_until(stream, stream.enqueued); }

// The default one is the current device's.
CudaEmulationStream& of(cudaStream_t stream) {
  static std::map<int, CudaEmulationStream> default_streams;
  if (stream != nullptr) return *stream;
  CudaEmulationStream& mine = default_streams[current_device];
  mine.device = current_device;
  streams.insert(&mine);
  return mine;
}

}  // namespace

namespace cuda_emulation {

cudaError_t enqueue(cudaStream_t stream, Work work) {
  const Lock lock(mutex);
  if (capture != nullptr) {
    if (!captured.contains(stream)) return forbidden();
    ++captured[stream][stream];
    capture->works.push_back(std::move(work));
    return cudaSuccess;
  }
  const cudaError_t error = enqueue_step(stream, [work = std::move(work)] {
    if (broken == cudaSuccess) work();
    return true;
  });
  return error != cudaSuccess ? error : result(broken);
}

cudaError_t enqueue_step(cudaStream_t stream, Step step) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  ++of(stream).enqueued;
  of(stream).queue.push_back(std::move(step));
  note_change();
  return cudaSuccess;
}

void note_change() {
  ++num_changes;
  changed.notify_all();
}

std::recursive_mutex& device_mutex() { return mutex; }
std::condition_variable_any& something_changed() { return changed; }
bool advance(cudaStream_t stream) { return streams.contains(stream) && ::advance(*stream); }

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, Work thread) {
  const dim3 grid = config.gridDim, threads = config.blockDim;
  const uint64_t count = uint64_t{threads.x} * threads.y * threads.z;
  if (count == 0 || count > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535) {
    return result(cudaErrorInvalidValue);
  }
  return enqueue(config.stream, [grid, threads, count, thread = std::move(thread)] {
    if (fails_now()) {
      broken = cudaErrorIllegalAddress;
      return;
    }
    gridDim = grid;
    blockDim = threads;
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          run_block(thread, static_cast<unsigned>(count));
        }
      }
    }
  });
}

}  // namespace cuda_emulation

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(mutex);
  *stream = new CudaEmulationStream{.device = current_device};
  streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(mutex);
  run_all(*stream);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  run_all(of(stream));
  return result(broken);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Lock lock(mutex);
  if (broken != cudaSuccess) return result(broken);
  if (of(stream).queue.empty()) return cudaSuccess;
  advance(of(stream));  // time goes by
  return cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  const std::set<cudaStream_t> all = streams;  // others may make some meanwhile
  for (const cudaStream_t stream : all) {
    if (streams.contains(stream) && stream->device == current_device) run_all(*stream);
  }
  return result(broken);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CudaEmulationEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(mutex);
  event->capture = capture_number;
  if (capture != nullptr) {  // works of all its streams are captured in the order of the calls
    if (!captured.contains(stream)) return forbidden();
    event->behind = captured[stream];
    return cudaSuccess;
  }
  cuda_emulation::enqueue(stream, [event] { event->time = std::chrono::steady_clock::now(); });
  event->stream = &of(stream);
  event->position = of(stream).enqueued;
  event->recorded = true;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(mutex);
  if (event->capture != capture_number) {
    return capture != nullptr ? forbidden() : result(cudaErrorCapturedEvent);
  }
  if (capture != nullptr) {
    Behind& mine = captured[stream];
    for (const auto& [other, works] : event->behind) mine[other] = std::max(mine[other], works);
    return cudaSuccess;
  }
  if (!event->recorded) return cudaSuccess;
  const cudaStream_t from = event->stream;
  const int64_t position = event->position;
  if (from == &of(stream)) return cudaSuccess;
  return cuda_emulation::enqueue_step(stream, [from, position] {
    while (streams.contains(from) && from->done < position) {
      if (!advance(*from)) return false;
    }
    return true;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  if (!event->recorded || !streams.contains(event->stream)) return cudaSuccess;
  if (event->stream->done >= event->position) return cudaSuccess;
  advance(*event->stream);  // time goes by
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  if (event->recorded && streams.contains(event->stream))
    run_until(*event->stream, event->position);
  return result(broken);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(mutex);
  if (!start->recorded || !end->recorded) return result(cudaErrorInvalidResourceHandle);
  if (end->stream->done < end->position) return result(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(mutex);
  if (capture != nullptr || stream == nullptr) return result(cudaErrorStreamCaptureUnsupported);
  capture = new CudaEmulationGraph;
  capturing_stream = stream;
  capture_number = ++num_captures;
  captured = {{stream, {}}};
  capture_failed = false;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(mutex);
  *graph = nullptr;
  if (capture == nullptr || stream != capturing_stream) return result(cudaErrorInvalidValue);
  std::unique_ptr<CudaEmulationGraph> works(std::exchange(capture, nullptr));
  capture_number = 0;
  if (capture_failed) return result(cudaErrorStreamCaptureInvalidated);
  for (auto& [other, behind] : captured) {
    if (captured[stream][other] < behind[other]) return result(cudaErrorStreamCaptureUnjoined);
  }
  *graph = works.release();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock(mutex);
  *status = capture != nullptr && stream == capturing_stream ? cudaStreamCaptureStatusActive
                                                             : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {  // NOLINT(google-runtime-int)
  *executable = new CudaEmulationGraphExec{graph->works};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  cudaDeviceSynchronize();
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return cuda_emulation::enqueue(stream, [executable] {
    for (const Work& work : executable->works) {
      if (broken == cudaSuccess) work();
    }
  });
}

// ---- memory ----

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  if (used_bytes() + bytes > device_bytes()) return result(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return result(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);  // nobody may rely on what it holds
  device_memory[static_cast<char*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (cudaDeviceSynchronize() != cudaSuccess) return forbidden();
  const Lock lock(mutex);
  if (memory != nullptr && device_memory.erase(static_cast<char*>(memory)) == 0) {
    return result(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return result(cudaErrorMemoryAllocation);
  pinned_memory[static_cast<char*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  cudaDeviceSynchronize();
  const Lock lock(mutex);
  if (memory != nullptr && pinned_memory.erase(static_cast<char*>(memory)) == 0) {
    return result(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(mutex);
  *total = device_bytes();
  *free = *total - used_bytes();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Lock lock(mutex);
  if (is_pageable(to) || is_pageable(from)) {
    if (capture != nullptr) return forbidden();
    run_all(of(stream));
    std::memmove(to, from, bytes);
    return cudaSuccess;
  }
  return cuda_emulation::enqueue(stream, [=] { std::memmove(to, from, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  run_all(of(nullptr));  // streams are non-blocking: the default one does not wait for them
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidValue);
  return cuda_emulation::enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * to_pitch,
                   static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const Lock lock(mutex);
  if (capture != nullptr) return forbidden();
  run_all(of(nullptr));
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return cuda_emulation::enqueue(stream, [=] { std::memset(memory, value, bytes); });
}
cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return cuda_emulation::enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(static_cast<char*>(memory) + row * pitch, value, width);
    }
  });
}

// ---- the device ----

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
  *value = attribute == cudaDevAttrMultiProcessorCount      ? properties.multiProcessorCount
           : attribute == cudaDevAttrComputeCapabilityMajor ? properties.major
                                                            : properties.minor;
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
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
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
