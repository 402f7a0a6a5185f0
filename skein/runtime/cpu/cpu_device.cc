#include "skein/runtime/cpu/cpu_device.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/runtime/host_memory.h"

namespace skein {

CpuDevice::CpuDevice(int threads, KernelTable kernels, std::string arithmetic)
    : arithmetic_(std::move(arithmetic)), kernels_(std::move(kernels)) {
  if (threads > 0) omp_set_num_threads(threads);
}

void* CpuDevice::allocate(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  require_host_memory(bytes, what);  // otherwise overcommit ends in an OOM kill, hours later
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kNoSpace, "cannot map {} for {}: {}", format_bytes(bytes), what,
         errno_text(errno));
  }
  ::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  fill_zero(memory, bytes);  // touches every page, so that all of it is resident now
  return memory;
}

void CpuDevice::require_room(int64_t device_bytes, int64_t host_bytes) {
  require_host_memory(device_bytes + host_bytes, "the program");
}

void CpuDevice::release(void* memory, int64_t bytes) {
  if (memory != nullptr) ::munmap(memory, static_cast<size_t>(bytes));
}

void CpuDevice::upload(void* device, const void* host, int64_t bytes) {
  std::memcpy(device, host, static_cast<size_t>(bytes));
}

void CpuDevice::download(void* host, const void* device, int64_t bytes) {
  std::memcpy(host, device, static_cast<size_t>(bytes));
}

void CpuDevice::fill_zero(void* device, int64_t bytes) {
  constexpr int64_t kPiece = int64_t{1} << 21;
#pragma omp parallel for schedule(static)
  for (int64_t offset = 0; offset < bytes; offset += kPiece) {
    std::memset(static_cast<char*>(device) + offset, 0,
                static_cast<size_t>(std::min(kPiece, bytes - offset)));
  }
}

}  // namespace skein
