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
  // A compiler of whole programs: it orders the terms of sums by their number, and takes subnormals
  // for zero. It compiles once for each shape.
  bool compiles = false;
};

inline TestDevice& test_device() {
  static TestDevice device;
  return device;
}

// Whether 8-bit products are added by a GPU's tensor cores, of which each addition keeps 14 bits of
// the largest term. The CPU and the emulation add in fp32.
inline bool adds_in_14_bits() { return !test_device().is_cpu && !test_device().is_slow; }
// Of the largest result, for sums of some tens of such products.
inline double fp8_tolerance() { return adds_in_14_bits() ? 0x1p-9 : 1e-5; }

}  // namespace skein::op_test
