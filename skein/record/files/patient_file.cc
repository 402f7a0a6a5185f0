#include "skein/record/files/patient_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/log.h"

namespace skein {
namespace {

// The descriptor is of no use any more, but another one of the same path may be: a server of NFS or
// of a file system in user space was started again, a device came back.
bool needs_reopening(int problem) {
  return problem == ESTALE || problem == ENOTCONN || problem == ENODEV;
}

// A disk that is full, over its quota, or fails may be mended while training goes on.
bool may_pass(int problem) {
  return problem == ENOSPC || problem == EDQUOT || problem == EIO || problem == EFBIG ||
         problem == EAGAIN || problem == ETIMEDOUT || needs_reopening(problem);
}

// The bytes of the file from `begin` on; nothing: they cannot be read.
std::optional<std::string> text_from(const FileDescriptor& file, int64_t begin) {
  struct stat status {};
  if (begin < 0 || ::fstat(file.get(), &status) != 0) return std::nullopt;
  std::string text(static_cast<size_t>(std::max<int64_t>(0, status.st_size - begin)), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = retry_interrupted([&] {
      return ::pread(file.get(), text.data() + done, text.size() - done,
                     begin + static_cast<int64_t>(done));
    });
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return text;
}

}  // namespace

PatientFile::PatientFile(FileDescriptor file, fs::path path, AfterATear after, bool torn)
    : file_(std::move(file)),
      path_(std::move(path)),
      after_(after),
      torn_(torn),
      end_(::lseek(file_.get(), 0, SEEK_END)) {}

PatientFile::~PatientFile() {
  if (waiting_.empty()) return;
  if (const int problem = write_waiting(); problem != 0) {
    log::error("cannot write {}: {}; its last {} bytes are lost", path_.string(),
               errno_text(problem), waiting_.size());
  }
}

void PatientFile::append(std::string_view record) {
  waiting_ += record;
  const int problem = write_waiting();
  if (problem == 0) {
    if (has_warned_) log::info("{} is written again, with all that waited", path_.string());
    has_warned_ = false;
    return;
  }
  if (!may_pass(problem) || waiting_.size() > kMostWaiting) finish();
  if (has_warned_ || waiting_.empty()) return;
  has_warned_ = true;
  log::warn("cannot write {}: {}; training continues, and the lines wait in memory", path_.string(),
            errno_text(problem));
}

void PatientFile::finish() {
  const int problem = write_waiting();
  if (problem == 0) return;
  const size_t missing = std::exchange(waiting_, "").size();
  fail(errno_code(problem), "cannot write {}: {}; its last {} bytes are lost", path_.string(),
       errno_text(problem), missing);
}

int PatientFile::write_waiting() {
  int problem = ENOSPC;  // a full disk takes a part once, and then nothing
  for (int attempt = 0; attempt < 4 && !waiting_.empty(); ++attempt) {
    const std::string text = torn_ ? "\n" + waiting_ : std::string();
    const std::string_view next = torn_ ? text : waiting_;
    const ssize_t count =
        retry_interrupted([&] { return ::write(file_.get(), next.data(), next.size()); });
    if (count < 0) {
      problem = errno;
      if (!needs_reopening(problem) || !reopen(problem)) return problem;
    }
    if (count <= 0) continue;
    end_ = ::lseek(file_.get(), 0, SEEK_CUR);
    taken(static_cast<size_t>(count) - (torn_ ? 1 : 0));
  }
  return waiting_.empty() ? 0 : problem;
}

// A call that failed may have written all the same, and what was taken may be gone: the file says.
// One that is not there any more is not made anew: nobody would look for lines in it.
bool PatientFile::reopen(int problem) {
  Result<FileDescriptor> opened = try_run([&] { return open_lines(path_, /*create=*/false); });
  if (!opened.ok()) return false;
  FileDescriptor file = std::move(opened).value();
  const int64_t size = ::lseek(file.get(), 0, SEEK_END);
  const int64_t known = std::min(end_, size), begin = std::max<int64_t>(0, known - 1);
  const std::optional<std::string> text = text_from(file, begin);
  if (!text) return false;
  log::info("{} was opened again: {}", path_.string(), errno_text(problem));
  if (size < end_) {
    log::warn("{} is shorter than it was: {} bytes that were written are lost", path_.string(),
              end_ - size);
  }
  file_ = std::move(file);
  end_ = size;
  drop_found(std::string_view(*text).substr(static_cast<size_t>(known - begin)));
  if (after_ == AfterATear::kLineAgain) torn_ = !text->empty() && text->back() != '\n';
  return true;
}

// Of what waits, the part that `added` to the file already has.
void PatientFile::drop_found(std::string_view added) {
  if (after_ == AfterATear::kRest) {  // nobody else appends to it
    waiting_.erase(0, added.size());
    return;
  }
  while (!waiting_.empty()) {
    const std::string line = waiting_.substr(0, waiting_.find('\n') + 1);
    if (added.find(line) == added.npos) return;
    waiting_.erase(0, line.size());
  }
}

void PatientFile::taken(size_t bytes) {
  if (after_ == AfterATear::kLineAgain) {
    torn_ = bytes > 0 && waiting_[bytes - 1] != '\n';
    bytes = waiting_.substr(0, bytes).rfind('\n') + 1;  // 0 where there is none
  }
  waiting_.erase(0, bytes);
}

}  // namespace skein
