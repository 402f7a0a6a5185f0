// What threads copy from a GPU to any host memory with: a stream and pinned memory each, so that
// those of a save wait neither for each other nor for what the GPU's own stream gets later.
//
// Cost     8 MiB of pinned memory a thread that reads at the same time, kept for the next one
// Threads  any number at once
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "skein/base/threads/mutex.h"

namespace skein {

class Readers {
 public:
  explicit Readers(int device_index);
  ~Readers();
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  // What `device` holds behind all that `stream` has got so far. Returns what waiting for it met,
  // which may be an error of what was started before.
  cudaError_t read(void* host, const void* device, int64_t bytes, cudaStream_t stream);

 private:
  struct Reader;
  std::unique_ptr<Reader> take();

  const int device_index_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Reader>> unused_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein
