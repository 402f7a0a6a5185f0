// Pinned host memory that uploads pass through: a ring, so that the host goes on while earlier
// copies wait for their turn on the device.
//
// Cost     one copy within the host an upload, of large ones by all OpenMP threads; waits only when
//          the ring is full of copies that the device has not made yet. With memory ahead, a stream
//          of its own fills that while the caller's stream is still busy; in its turn only a copy
//          within the device is left
// Threads  one
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace skein {

class StagingRing {
 public:
  // `ahead`: as many bytes on the device, of cudaMalloc, which the ring frees; or null.
  StagingRing(int64_t bytes, void* ahead);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // `host` is free again when it returns; `device` is written in the order of `stream`.
  void upload(void* device, const void* host, int64_t bytes, cudaStream_t stream);
  int64_t largest_piece() const { return size_ / 4; }

 private:
  struct StagedPiece {
    int64_t end;  // of the bytes that the ring has given out since it began
    cudaEvent_t copied;
  };
  char* reserve(int64_t bytes);
  void upload_piece(char* device, const char* host, int64_t bytes, cudaStream_t stream);

  int64_t size_;
  char* memory_ = nullptr;
  char* ahead_;  // on the device, byte by byte what memory_ is on the host; or null
  cudaStream_t ahead_stream_ = nullptr;
  cudaEvent_t arrived_ = nullptr;
  int64_t begin_ = 0, end_ = 0;  // given out, and not free again yet
  std::deque<StagedPiece> pieces_;
  std::vector<cudaEvent_t> events_;  // unused
};

}  // namespace skein
