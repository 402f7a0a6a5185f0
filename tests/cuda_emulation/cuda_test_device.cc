// Runs the op tests on CUDA's kernels. Exit code 77, which ctest shows as skipped: there is no GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/ops/test_device.h"
#include "tests/test_home.h"

namespace skein::op_test {
namespace {

// A device of so few multiprocessors is the emulation, or not much faster.
constexpr int kFewMultiprocessors = 8;

cudaStream_t stream = nullptr;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Pinned memory, which the device reads and writes in place.
void* allocate(int64_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocMapped), "cudaHostAlloc");
  return memory;
}
void release(void* memory) { check(cudaFreeHost(memory), "cudaFreeHost"); }
void synchronize() { check(cudaStreamSynchronize(stream), "a kernel"); }

bool use_cuda() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    std::printf("SKIPPED: no CUDA device (%s)\n", cudaGetErrorString(error));
    return false;
  }
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  test_device() = {cuda_kernels(), allocate, release, stream, synchronize};
  test_device().is_cpu = false;
  test_device().is_slow = properties.multiProcessorCount <= kFewMultiprocessors;
  return true;
}

}  // namespace
}  // namespace skein::op_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const skein::TestHome home;
  if (!skein::op_test::use_cuda()) return 77;
  return RUN_ALL_TESTS();
}
