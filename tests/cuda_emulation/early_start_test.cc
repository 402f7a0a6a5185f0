// Kernels that start early: they end the program unless each of their threads waits.
#include <gtest/gtest.h>

#include "cuda_runtime.h"

namespace {

void wait_in_thread(unsigned thread) {
  if (threadIdx.x <= thread) cuda_emulation::note_wait_for_previous_kernel();
}

void start_early(unsigned thread) {
  cudaLaunchAttribute early = {cudaLaunchAttributeProgrammaticStreamSerialization, {1}};
  cudaLaunchConfig_t config;
  config.blockDim = 2;
  config.attrs = &early;
  config.numAttrs = 1;
  EXPECT_EQ(cudaLaunchKernelEx(&config, wait_in_thread, thread), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(EarlyStart, RunsWhatWaits) { start_early(1); }

TEST(EarlyStartDeathTest, EndsWhereAThreadDoesNotWait) {
  EXPECT_DEATH(start_early(0), "threads that do not wait");
}

}  // namespace
