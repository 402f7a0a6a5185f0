// Captures over two streams, by the calls of the runtime alone.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace skein {

class CaptureTest : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&stream_, &beside_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    for (cudaEvent_t* event : {&begun_, &ended_}) {
      ASSERT_EQ(cudaEventCreateWithFlags(event, cudaEventDisableTiming), cudaSuccess);
    }
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, 2 * sizeof(int)), cudaSuccess);
    numbers_ = static_cast<int*>(memory);
    ASSERT_EQ(cudaMemsetAsync(numbers_, 0, 2 * sizeof(int), stream_), cudaSuccess);
  }
  void TearDown() override {
    cudaGetLastError();
    cudaEventDestroy(begun_);
    cudaEventDestroy(ended_);
    cudaStreamDestroy(beside_);
    cudaStreamDestroy(stream_);
    cudaFree(numbers_);
  }

  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  cudaError_t copy_beside() {
    return cudaMemcpyAsync(numbers_ + 1, numbers_, sizeof(int), cudaMemcpyDefault, beside_);
  }
  cudaError_t fork() {
    cudaEventRecord(begun_, stream_);
    return cudaStreamWaitEvent(beside_, begun_, 0);
  }
  cudaError_t join() {
    cudaEventRecord(ended_, beside_);
    return cudaStreamWaitEvent(stream_, ended_, 0);
  }
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    return error;
  }

  cudaStream_t stream_ = nullptr, beside_ = nullptr;
  cudaEvent_t begun_ = nullptr, ended_ = nullptr;
  int* numbers_ = nullptr;
};

}  // namespace skein
