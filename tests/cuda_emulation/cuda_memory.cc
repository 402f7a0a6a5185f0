// Memory of the devices and of the host, copies and fills.
#include <cstdlib>
#include <cstring>
#include <map>

#include "runtime_state.h"

namespace cuda_emulation {
namespace {

std::map<const char*, size_t> device_memory, pinned_memory;  // by address

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

}  // namespace

size_t device_bytes() {
  const char* text = std::getenv("CUDA_EMULATION_MEMORY");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : size_t{8} << 30;
}

}  // namespace cuda_emulation

using namespace cuda_emulation;  // NOLINT(google-build-using-namespace)

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const Lock lock(device_mutex());
  if (is_capturing()) return forbidden();
  if (used_bytes() + bytes > device_bytes()) return result(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return result(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);  // nobody may rely on what it holds
  device_memory[static_cast<char*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (cudaDeviceSynchronize() != cudaSuccess) return forbidden();
  const Lock lock(device_mutex());
  if (memory != nullptr && device_memory.erase(static_cast<char*>(memory)) == 0) {
    return result(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const Lock lock(device_mutex());
  if (is_capturing()) return forbidden();
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return result(cudaErrorMemoryAllocation);
  pinned_memory[static_cast<char*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  cudaDeviceSynchronize();
  const Lock lock(device_mutex());
  if (memory != nullptr && pinned_memory.erase(static_cast<char*>(memory)) == 0) {
    return result(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(device_mutex());
  *total = device_bytes();
  *free = *total - used_bytes();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Lock lock(device_mutex());
  if (is_pageable(to) || is_pageable(from)) {
    if (is_capturing()) return forbidden();
    run_all(stream);
    std::memmove(to, from, bytes);
    return cudaSuccess;
  }
  return enqueue(stream, [=] { std::memmove(to, from, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  const Lock lock(device_mutex());
  if (is_capturing()) return forbidden();
  run_all(nullptr);  // streams are non-blocking: the default one does not wait for them
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * to_pitch,
                   static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const Lock lock(device_mutex());
  if (is_capturing()) return forbidden();
  run_all(nullptr);
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(memory, value, bytes); });
}
cudaError_t cudaMemset2DAsync(void* memory, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(static_cast<char*>(memory) + row * pitch, value, width);
    }
  });
}
