// Device memory that is released when it goes out of scope, also by an exception.
//
// Errors  Device::allocate's
#pragma once

#include <string>

#include "skein/runtime/device.h"

namespace skein {

class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, int64_t bytes, const std::string& what)
      : device_(device), bytes_(bytes), data_(device.allocate(bytes, what)) {}
  ~DeviceBuffer() { device_.release(data_, bytes_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device& device_;
  int64_t bytes_;
  void* data_;
};

}  // namespace skein
