#include "skein/base/files/watched_file.h"

#include <fmt/chrono.h>
#include <sys/resource.h>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_unchanged(const struct stat& now, const struct stat& before) {
  return now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == before.st_mtim.tv_nsec;
}

// "5168 bytes of 2026-03-01T12:00:00.123456789Z"
std::string text_of(const struct stat& file) {
  struct tm utc {};
  gmtime_r(&file.st_mtim.tv_sec, &utc);
  return fmt::format("{} bytes of {:%Y-%m-%dT%H:%M:%S}.{:09}Z", file.st_size, utc,
                     file.st_mtim.tv_nsec);
}

// Whether there are descriptors enough for this one to stay open: they are given lowest first.
bool is_kept_open(const FileDescriptor& file) {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(file.get()) < limit.rlim_cur / 2;
}

}  // namespace

WatchedFile::WatchedFile(const fs::path& path) : file_(open_to_read(path)) {
  if (::fstat(file_.get(), &opened_) != 0) {
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  map_ = MappedFile(file_, path);
  region_ = MappedRegion(map_.bytes(), path);
  is_read_ = std::make_unique<std::atomic<bool>>(true);  // its header is
  if (!is_kept_open(file_)) file_.reset();
}

std::string WatchedFile::check() const {
  if (!is_read_ || !is_read_->exchange(false)) return "";
  struct stat named {};
  const int refused = ::stat(map_.path().c_str(), &named) == 0 ? 0 : errno;
  const bool is_here = refused == 0 && is_same_file(named, opened_);
  struct stat now = is_here ? named : opened_;
  if (file_.get() >= 0 && ::fstat(file_.get(), &now) != 0) now = opened_;
  if (now.st_size < opened_.st_size) {  // as require_no_lost_pages() says it
    fail(ErrorCode::kInvalid,
         "{}: the file became shorter while it was read: it had {} bytes and has {}; put back what "
         "it was, and start again",
         map_.path().string(), opened_.st_size, now.st_size);
  }
  if (!is_unchanged(now, opened_)) {
    fail(ErrorCode::kInvalid,
         "{}: was changed while it was read: {} were opened, and it is {} by now; expected one "
         "text through all of the run: restore the text that the run began with, and start again",
         map_.path().string(), text_of(opened_), text_of(now));
  }
  if (is_here) return "";
  if (refused == 0) return "was replaced by another file";
  return refused == ENOENT ? "was removed" : "cannot be looked at: " + errno_text(refused);
}

}  // namespace skein
