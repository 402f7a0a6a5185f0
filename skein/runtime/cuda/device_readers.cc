#include "skein/runtime/cuda/device_readers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "skein/base/machine/check_cuda.h"

namespace skein {

using cuda::check;

namespace {
constexpr int64_t kPinnedBytes = int64_t{8} << 20;
}  // namespace

struct Readers::Reader {
  Reader() = default;
  ~Reader() {
    if (written != nullptr) cudaEventDestroy(written);
    if (stream != nullptr) cudaStreamDestroy(stream);
    cudaFreeHost(pinned);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void open() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), "cudaEventCreate");
    check(cudaHostAlloc(&pinned, kPinnedBytes, cudaHostAllocPortable), "pinned memory for reading");
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t written = nullptr;  // on the GPU's own stream: what is read is complete
  void* pinned = nullptr;
};

Readers::Readers(int device_index) : device_index_(device_index) {}
Readers::~Readers() = default;

std::unique_ptr<Readers::Reader> Readers::take() {
  {
    const Lock lock(mutex_);
    if (!unused_.empty()) {
      auto reader = std::move(unused_.back());
      unused_.pop_back();
      return reader;
    }
  }
  auto reader = std::make_unique<Reader>();
  reader->open();
  return reader;
}

cudaError_t Readers::read(void* host, const void* device, int64_t bytes, cudaStream_t stream) {
  check(cudaSetDevice(device_index_), "cudaSetDevice");  // in a thread that may be new to CUDA
  auto reader = take();
  check(cudaEventRecord(reader->written, stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(reader->stream, reader->written, 0), "cudaStreamWaitEvent");
  for (int64_t done = 0; done < bytes; done += kPinnedBytes) {
    const auto piece = static_cast<size_t>(std::min(kPinnedBytes, bytes - done));
    check(cudaMemcpyAsync(reader->pinned, static_cast<const char*>(device) + done, piece,
                          cudaMemcpyDefault, reader->stream),
          "a download");
    const cudaError_t error = cudaStreamSynchronize(reader->stream);
    if (error != cudaSuccess) return error;
    std::memcpy(static_cast<char*>(host) + done, reader->pinned, piece);
  }
  const Lock lock(mutex_);
  unused_.push_back(std::move(reader));
  return cudaSuccess;
}

}  // namespace skein
