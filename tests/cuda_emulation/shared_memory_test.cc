// Shared memory of a launch: how much a kernel may have, and what it holds.
#include <gtest/gtest.h>

#include <cmath>

#include "cuda_runtime.h"

namespace {

void find_nan(bool* found) {
  auto* memory = static_cast<float*>(cuda_emulation::dynamic_memory(sizeof(float)));
  *found = std::isnan(*memory);
  *memory = 1;
}
void use_too_much() { cuda_emulation::dynamic_memory(2000); }

cudaError_t launch_with(size_t bytes, bool* found) {
  cudaLaunchConfig_t config;
  config.dynamicSmemBytes = bytes;
  return cudaLaunchKernelEx(&config, find_nan, found);
}

TEST(SharedMemory, BeyondTheUsualMustBeAllowed) {
  bool found = false;
  for (int launch = 0; launch < 2; ++launch) {
    found = false;
    EXPECT_EQ(launch_with(48 << 10, &found), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(found);  // nothing is left of the launch before
  }
  EXPECT_EQ(launch_with(49 << 10, &found), cudaErrorInvalidValue);
  constexpr auto kMost = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(find_nan, kMost, 228 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(find_nan, kMost, 227 << 10), cudaSuccess);
  EXPECT_EQ(launch_with(49 << 10, &found), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  static_cast<void>(cudaGetLastError());
}

TEST(SharedMemoryDeathTest, EndsWhereAKernelUsesMoreThanItHas) {
  const auto run = [] {
    cudaLaunchConfig_t config;
    config.dynamicSmemBytes = 1000;
    static_cast<void>(cudaLaunchKernelEx(&config, use_too_much));
    static_cast<void>(cudaDeviceSynchronize());
  };
  EXPECT_DEATH(run(), "more shared memory than its launch");
}

}  // namespace
