#include "skein/runtime/cpu/cpu_device.h"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/base/units.h"

namespace skein {
namespace {

// What the kernel says could be taken without swapping; -1 where it does not say.
int64_t available_bytes() {
  const std::string text = read_file_if_any("/proc/meminfo");
  const size_t at = text.find("MemAvailable:");
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + 13) * 1024;
}

}  // namespace

CpuDevice::CpuDevice(int threads, KernelTable kernels) : kernels_(std::move(kernels)) {
  if (threads > 0) omp_set_num_threads(threads);
}

void* CpuDevice::allocate(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  // Overcommit would turn a lack of memory into a kill, hours later: look first.
  const int64_t available = available_bytes();
  if (available >= 0 && bytes > available) {
    fail(
        ErrorCode::kNoSpace,
        "{} needs {}, and this machine has {} of memory left: use a smaller batch.micro_sequences, "
        "memory.recompute = \"full\" or more workers (`skein plan` shows what each would take)",
        what, format_bytes(bytes), format_bytes(available));
  }
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kNoSpace, "cannot map {} for {}: {}", format_bytes(bytes), what,
         errno_text(errno));
  }
  ::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  fill_zero(memory, bytes);  // resident now, or never
  return memory;
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
