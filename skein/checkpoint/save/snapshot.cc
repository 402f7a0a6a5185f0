#include "skein/checkpoint/save/snapshot.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/quiet_thread.h"

namespace skein {
namespace {
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;
// The kernel clears pages at some GB/s a thread; a few are as fast as the memory. Half of the
// cores, since others compute or load data meanwhile.
constexpr int64_t kTouchBytes = int64_t{256} << 20;  // for a thread, at least
constexpr int64_t kMostThreads = 8;

int64_t num_touching_threads(int64_t bytes) {
  const int64_t half = num_cores() / 2;
  return std::clamp<int64_t>(bytes / kTouchBytes, 1, std::clamp<int64_t>(half, 1, kMostThreads));
}
}  // namespace

Snapshot::Snapshot(int64_t bytes) : size_(bytes) {
  if (size_ == 0) return;
  void* address =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    fail(ErrorCode::kNoSpace, "[checkpoint] the snapshot needs {} of memory: {}",
         format_bytes(size_), errno_text(errno));
  }
  data_ = static_cast<std::byte*>(address);
  ::madvise(data_, size_, MADV_HUGEPAGE);  // optional: only for speed
  const int64_t share = round_up(ceil_div(size_, num_touching_threads(size_)), kHugePageBytes);
  for (int64_t begin = 0; begin < size_; begin += share) {
    touching_.push_back(
        quiet_thread([this, begin, share] { touch(begin, std::min(begin + share, size_)); }));
  }
}

void Snapshot::touch(int64_t begin, int64_t end) {
  ::setpriority(PRIO_PROCESS, 0, 19);  // of this thread: weights are drawn meanwhile
  for (int64_t byte = begin; byte < end; byte += kPageBytes) {
    *const_cast<volatile std::byte*>(data_ + byte) = std::byte{0};
  }
}

std::span<std::byte> Snapshot::bytes() {
  for (std::thread& thread : touching_) thread.join();
  touching_.clear();
  return {data_, static_cast<size_t>(size_)};
}

Snapshot::~Snapshot() {
  bytes();
  if (data_ != nullptr) ::munmap(data_, size_);
}

namespace {

void check_view(const TensorSpec& spec, const View& view) {
  const bool is_slice = view.shape == spec.slice.shape;
  const bool is_vector = spec.range && view.shape.rank() == 1;
  const int64_t end = spec.local_begin + spec.stored_range().count;
  if (view.dtype == spec.dtype && (is_slice || is_vector) && end <= view.shape.num_elements()) {
    return;
  }
  fail(ErrorCode::kInternal, "[checkpoint] tensor \"{}\" is given as {} {}, expected {} {}{}",
       spec.name, dtype_name(view.dtype), view.shape.to_string(), dtype_name(spec.dtype),
       spec.slice.shape.to_string(),
       spec.range ? fmt::format(", or a vector of at least {} elements", end) : "");
}

}  // namespace

void SnapshotCopy::start(const CheckpointLayout& layout, std::span<const View> views,
                         std::span<std::byte> snapshot, const CopyFunction& copy) {
  if (views.size() != layout.specs.size()) {
    fail(ErrorCode::kInternal, "[checkpoint] {} views given for {} tensors", views.size(),
         layout.specs.size());
  }
  for (size_t i = 0; i < views.size(); ++i) check_view(layout.specs[i], views[i]);
  layout_ = &layout;
  views_ = views;
  target_ = snapshot.data();
  copy_ = &copy;
  next_byte_ = 0;
}

void SnapshotCopy::help() {
  while (true) {
    const int64_t begin = next_byte_.fetch_add(kPieceBytes);
    if (begin >= layout_->snapshot_bytes) return;
    copy_piece(begin, std::min(begin + kPieceBytes, layout_->snapshot_bytes));
  }
}

// Copies the data of snapshot bytes [begin, end).
void SnapshotCopy::copy_piece(int64_t begin, int64_t end) {
  const auto& starts = layout_->snapshot_begin;
  size_t i = std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin() - 1;
  for (; i < starts.size() && starts[i] < end; ++i) {
    const View& view = views_[i];
    const int64_t row_bytes = view.cols() * size_of(view.dtype);
    const bool one_run = view.is_contiguous();
    const int64_t run_bytes = one_run ? view.num_bytes() : row_bytes;
    const int64_t stride_bytes = one_run ? run_bytes : view.row_stride * size_of(view.dtype);
    const int64_t skipped = layout_->specs[i].local_begin * size_of(view.dtype);
    int64_t at = std::max(begin - starts[i], int64_t{0});
    const int64_t stop = std::min(end - starts[i], layout_->spec_bytes[i]);
    while (at < stop) {
      const int64_t row = (skipped + at) / run_bytes, inside = (skipped + at) % run_bytes;
      const int64_t count = std::min(run_bytes - inside, stop - at);
      (*copy_)(target_ + starts[i] + at,
               static_cast<const std::byte*>(view.data) + row * stride_bytes + inside, count);
      at += count;
    }
  }
}

}  // namespace skein
