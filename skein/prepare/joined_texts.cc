#include "skein/prepare/joined_texts.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "skein/base/error.h"
#include "skein/data/corpus_writer.h"

namespace skein {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kUnwrittenBytes = int64_t{256} << 20;  // that may wait for the disk
constexpr int64_t kLeftBytes = int64_t{512} << 20;       // that may wait for their turn, and for it
constexpr auto kNoticeable = std::chrono::milliseconds(2);

}  // namespace

JoinedTexts::JoinedTexts(const fs::path& path, size_t num_pieces)
    : path_(path), end_(kCorpusTextBegin), left_bytes_(num_pieces, -1) {}

void JoinedTexts::open() {
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  const Lock lock(mutex_);
  if (file.get() < 0 || ::ftruncate(file.get(), end_) != 0) {
    fail(errno_code(errno), "cannot create {}: {}", path_.string(), errno_text(errno));
  }
}

std::optional<int64_t> JoinedTexts::turn(size_t piece) const {
  const Lock lock(mutex_);
  return piece == next_ ? std::optional(end_) : std::nullopt;
}

void JoinedTexts::put(int64_t num_bytes) {
  const Lock lock(mutex_);
  ++next_;
  end_ += num_bytes;
}

void JoinedTexts::leave(size_t piece, int64_t num_bytes) {
  const Lock lock(mutex_);
  left_bytes_[piece] = num_bytes;
  num_left_bytes_ += num_bytes;
}

std::optional<size_t> JoinedTexts::take_left() {
  const Lock lock(mutex_);
  if (next_ == left_bytes_.size() || left_bytes_[next_] < 0) return std::nullopt;
  num_left_bytes_ -= std::exchange(left_bytes_[next_], -1);
  return next_;
}

void JoinedTexts::write_behind(int fd, int64_t end) {
  end = end / kPageBytes * kPageBytes;  // the last page is still written to
  ::sync_file_range(fd, written_, end - written_, SYNC_FILE_RANGE_WRITE);
  const auto begin = std::chrono::steady_clock::now();
  if (const int64_t early = end - kUnwrittenBytes; early > written_) {
    ::sync_file_range(fd, written_, early - written_, SYNC_FILE_RANGE_WAIT_BEFORE);
    written_ = early;
  }
  const Lock lock(mutex_);
  disk_is_behind_ = std::chrono::steady_clock::now() - begin > kNoticeable;
}

bool JoinedTexts::may_begin(size_t piece) const {
  const Lock lock(mutex_);
  return piece == next_ || !disk_is_behind_ || num_left_bytes_ < kLeftBytes;
}

}  // namespace skein
