#include "skein/runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "skein/base/machine/check_cuda.h"
#include "skein/base/text/units.h"

namespace skein {

using cuda::check;

namespace {
constexpr int64_t kAlignment = 256;

// One thread copies several times more slowly than the GPU fetches.
void copy_by_threads(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kPart = int64_t{1} << 20;
#pragma omp parallel for schedule(static) if (bytes > kPart)
  for (int64_t at = 0; at < bytes; at += kPart) {
    std::memcpy(to + at, from + at, static_cast<size_t>(std::min(kPart, bytes - at)));
  }
}

}  // namespace

StagingRing::StagingRing(int64_t bytes, void* ahead)
    : size_(bytes), ahead_(static_cast<char*>(ahead)) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocDefault),
        "pinned memory for uploads");
  memory_ = static_cast<char*>(memory);
  if (ahead_ == nullptr) return;
  check(cudaStreamCreateWithFlags(&ahead_stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "cudaEventCreate");
}

StagingRing::~StagingRing() {
  for (const StagedPiece& piece : pieces_) {
    cudaEventSynchronize(piece.copied);
    cudaEventDestroy(piece.copied);
  }
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  if (ahead_ != nullptr) {
    cudaEventDestroy(arrived_);
    cudaStreamDestroy(ahead_stream_);
    cudaFree(ahead_);
  }
  cudaFreeHost(memory_);
}

// Contiguous memory; what does not fit before the end of the ring begins anew.
char* StagingRing::reserve(int64_t bytes) {
  int64_t at = round_up(end_, kAlignment);
  if (at % size_ + bytes > size_) at = round_up(at, size_);
  while (!pieces_.empty() && at + bytes - begin_ > size_) {
    check(cudaEventSynchronize(pieces_.front().copied), "an upload");
    begin_ = pieces_.front().end;
    events_.push_back(pieces_.front().copied);
    pieces_.pop_front();
  }
  if (pieces_.empty()) begin_ = at;
  end_ = at + bytes;
  return memory_ + at % size_;
}

void StagingRing::upload_piece(char* device, const char* host, int64_t bytes, cudaStream_t stream) {
  char* staged = reserve(bytes);
  copy_by_threads(staged, host, bytes);
  const char* from = staged;
  if (ahead_ != nullptr) {
    char* ahead = ahead_ + (staged - memory_);
    check(cudaMemcpyAsync(ahead, staged, static_cast<size_t>(bytes), cudaMemcpyDefault,
                          ahead_stream_),
          "an upload");
    check(cudaEventRecord(arrived_, ahead_stream_), "cudaEventRecord");
    check(cudaStreamWaitEvent(stream, arrived_, 0), "cudaStreamWaitEvent");
    from = ahead;
  }
  check(cudaMemcpyAsync(device, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream),
        "an upload");
  if (events_.empty()) {
    events_.emplace_back();
    check(cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming), "cudaEventCreate");
  }
  check(cudaEventRecord(events_.back(), stream), "cudaEventRecord");
  pieces_.push_back({end_, events_.back()});
  events_.pop_back();
}

void StagingRing::upload(void* device, const void* host, int64_t bytes, cudaStream_t stream) {
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(bytes - done, largest_piece());
    upload_piece(static_cast<char*>(device) + done, static_cast<const char*>(host) + done, piece,
                 stream);
    done += piece;
  }
}

}  // namespace skein
