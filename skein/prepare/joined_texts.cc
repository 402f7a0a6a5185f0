#include "skein/prepare/joined_texts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/data/corpus/corpus_writer.h"

namespace skein {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kUnwrittenBytes = int64_t{256} << 20;  // that may wait for the disk
constexpr int64_t kLeftBytes = int64_t{512} << 20;       // that may wait for their turn, and for it
constexpr int64_t kLeastBytes = int64_t{8} << 20;        // that the disk is told to write
constexpr int64_t kMostBytes = int64_t{64} << 20;

}  // namespace

JoinedTexts::JoinedTexts(const fs::path& path, size_t num_pieces)
    : path_(path), end_(kCorpusTextBegin), left_bytes_(num_pieces, -1) {}

void JoinedTexts::open() {
  file_ = open_or_create(path_);
  const Lock lock(mutex_);
  if (::ftruncate(file_.get(), end_) != 0) {
    fail(errno_code(errno), "cannot create {}: {}", path_.string(), errno_text(errno));
  }
  to_write_ = written_ = end_ / kPageBytes * kPageBytes;
  writer_ = quiet_thread([this] { write(); });
}

void JoinedTexts::close() {
  if (!writer_.joinable()) return;
  {
    const Lock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  writer_.join();
  file_.reset();
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

void JoinedTexts::copy(const FileBytes& text, int64_t begin) {
  const Spool to = Spool::inside(path_, begin);
  for (int64_t copied = 0; copied < text.num_bytes;) {
    const int64_t num_bytes = std::min(kMostBytes, text.num_bytes - copied);
    copy_bytes({text.fd, text.begin + copied, num_bytes, text.path}, to.fd(), path_);
    copied += num_bytes;
    write_behind(begin + copied);
  }
}

void JoinedTexts::write_behind(int64_t end) {
  Lock lock(mutex_);
  to_write_ = end / kPageBytes * kPageBytes;  // the last page is still written to
  changed_.notify_all();
  const auto is_near = [this]() SKEIN_REQUIRES(mutex_) {
    return to_write_ - written_ <= kUnwrittenBytes;
  };
  disk_is_behind_ = !is_near();
  changed_.wait(lock, is_near);
}

// Two parts at a time are on their way. Errors of the disk show when the corpus is fsynced.
void JoinedTexts::write() {
  Lock lock(mutex_);
  int64_t begun = written_;
  while (true) {
    changed_.wait(lock, [&]() SKEIN_REQUIRES(mutex_) {
      return is_closed_ || to_write_ - begun >= kLeastBytes;
    });
    if (is_closed_) return;
    const int64_t written = written_, end = std::min(to_write_, begun + kMostBytes);
    lock.unlock();
    ::sync_file_range(file_.get(), begun, end - begun, SYNC_FILE_RANGE_WRITE);
    if (begun > written) {
      ::sync_file_range(file_.get(), written, begun - written, SYNC_FILE_RANGE_WAIT_BEFORE);
    }
    lock.lock();
    written_ = std::exchange(begun, end);
    changed_.notify_all();
  }
}

bool JoinedTexts::may_begin(size_t piece) const {
  const Lock lock(mutex_);
  return piece == next_ || !disk_is_behind_ || num_left_bytes_ < kLeftBytes;
}

}  // namespace skein
