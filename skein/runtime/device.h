// A place where programs run: memory, copies, kernels. Backends live in runtime/<kind>/; nothing
// above this room includes their headers.
//
// Threads  a device is used by one thread at a time, but for copies to the host of memory that no
//          program is writing
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "skein/ir/kernel.h"

namespace skein {

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& kind() const = 0;  // "cpu", "null"
  virtual const KernelTable& kernels() const = 0;

  // Zeroed memory, resident at once. Throws Error{kNoSpace} naming the size and what is free.
  virtual void* allocate(int64_t bytes, const std::string& what) = 0;
  virtual void release(void* memory, int64_t bytes) = 0;

  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void fill_zero(void* device, int64_t bytes) = 0;
  // Waits until everything that was started has finished.
  virtual void synchronize() = 0;
};

struct DeviceOptions {
  std::string kind = "cpu";  // cpu | null
  int threads = 0;           // 0: all cores
};

// Errors  kUnsupported for a kind that this build lacks
std::unique_ptr<Device> make_device(const DeviceOptions& options, KernelTable kernels);

}  // namespace skein
