// The device that the op tests run on: the CPU, or what a test program sets before its tests.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "skein/ops/ops.h"

namespace skein::op_test {

struct TestDevice {
  KernelTable kernels = cpu_kernels();
  // Memory that both the host and the kernels see.
  void* (*allocate)(int64_t bytes) = [](int64_t bytes) { return std::malloc(bytes); };
  void (*release)(void*) = std::free;
  void* stream = nullptr;
  void (*synchronize)() = [] {};
  bool is_cpu = true;
  bool is_slow = false;  // tests take fewer and smaller cases
};

inline TestDevice& test_device() {
  static TestDevice device;
  return device;
}

}  // namespace skein::op_test
