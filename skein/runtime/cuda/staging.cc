#include "skein/runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "skein/base/check_cuda.h"
#include "skein/base/units.h"

namespace skein {

using cuda::check;

namespace {
constexpr int64_t kAlignment = 256;
}  // namespace

StagingRing::StagingRing(int64_t bytes) : size_(bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocDefault),
        "pinned memory for uploads");
  memory_ = static_cast<char*>(memory);
}

StagingRing::~StagingRing() {
  for (const Piece& piece : pieces_) {
    cudaEventSynchronize(piece.copied);
    cudaEventDestroy(piece.copied);
  }
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
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
  std::memcpy(staged, host, static_cast<size_t>(bytes));
  check(cudaMemcpyAsync(device, staged, static_cast<size_t>(bytes), cudaMemcpyDefault, stream),
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
    const int64_t piece = std::min(bytes - done, size_ / 4);
    upload_piece(static_cast<char*>(device) + done, static_cast<const char*>(host) + done, piece,
                 stream);
    done += piece;
  }
}

}  // namespace skein
