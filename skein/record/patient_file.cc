#include "skein/record/patient_file.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/log.h"

namespace skein {
namespace {

// A disk that is full, over its quota, or fails may be mended while training goes on.
bool may_pass(int problem) {
  return problem == ENOSPC || problem == EDQUOT || problem == EIO || problem == EFBIG ||
         problem == EAGAIN || problem == ESTALE || problem == ETIMEDOUT;
}

}  // namespace

PatientFile::PatientFile(FileDescriptor file, fs::path path, AfterATear after, bool torn)
    : file_(std::move(file)), path_(std::move(path)), after_(after), torn_(torn) {}

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
  log::warn("cannot write {}: {}; training goes on, and what belongs there waits in memory",
            path_.string(), errno_text(problem));
}

void PatientFile::finish() {
  const int problem = write_waiting();
  if (problem == 0) return;
  const size_t missing = std::exchange(waiting_, "").size();
  fail(errno_code(problem), "cannot write {}: {}; its last {} bytes are lost", path_.string(),
       errno_text(problem), missing);
}

int PatientFile::write_waiting() {
  // A full disk takes a part once, and then nothing.
  for (int attempt = 0; attempt < 4 && !waiting_.empty(); ++attempt) {
    const std::string text = torn_ ? "\n" + waiting_ : std::string();
    const std::string_view next = torn_ ? text : waiting_;
    const ssize_t count =
        retry_interrupted([&] { return ::write(file_.get(), next.data(), next.size()); });
    if (count < 0) return errno;
    if (count == 0) continue;
    taken(static_cast<size_t>(count) - (torn_ ? 1 : 0));
  }
  return waiting_.empty() ? 0 : ENOSPC;
}

void PatientFile::taken(size_t bytes) {
  if (after_ == AfterATear::kLineAgain) {
    torn_ = bytes > 0 && waiting_[bytes - 1] != '\n';
    bytes = waiting_.substr(0, bytes).rfind('\n') + 1;  // 0 where there is none
  }
  waiting_.erase(0, bytes);
}

}  // namespace skein
