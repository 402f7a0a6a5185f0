#include "skein/base/machine/check_cuda.h"
#include "skein/base/machine/start_kernel_cuda.h"
#include "skein/runtime/cuda/stream_progress.h"

namespace skein {

using cuda::check;

namespace {

__global__ void write_word(int64_t* word, int64_t value) {
  cuda::wait_for_previous_kernel();
  *word = value;
}

void write_later(volatile int64_t* word, int64_t value, cudaStream_t stream) {
  check(cuda::start_kernel(stream, 1, 1, 0, write_word, const_cast<int64_t*>(word), value),
        "where the GPU is");
}

}  // namespace

StreamProgress::StreamProgress() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(Words), cudaHostAllocPortable), "pinned memory");
  words_ = static_cast<volatile Words*>(memory);
  words_->step = 0;
  words_->place = 0;
}

StreamProgress::~StreamProgress() { cudaFreeHost(const_cast<Words*>(words_)); }

int64_t StreamProgress::name(const std::string& place) {
  places_.push_back(place);
  return static_cast<int64_t>(places_.size()) - 1;
}

void StreamProgress::pass_breadcrumb(int64_t place, cudaStream_t stream) {
  write_later(&words_->place, place, stream);
}

void StreamProgress::pass_step(int64_t step, cudaStream_t stream) {
  write_later(&words_->step, step, stream);
}

std::string StreamProgress::text() const {
  std::string text;
  if (words_->step != 0) text += fmt::format(" in step {}", words_->step);
  const std::string& place = places_.at(static_cast<size_t>(words_->place));
  if (!place.empty()) text += (text.empty() ? " " : ", ") + place;
  return text;
}

}  // namespace skein
