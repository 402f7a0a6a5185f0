#include "skein/checkpoint/find/run_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/file_lock.h"

namespace skein {
namespace {

LockText read_lock(const FileDescriptor& file) {
  std::array<char, 8192> text{};
  const ssize_t count =
      retry_interrupted([&] { return ::pread(file.get(), text.data(), text.size(), 0); });
  return LockText::parse(count > 0 ? std::string(text.data(), static_cast<size_t>(count)) : "");
}

std::string advice_of(const RunLock::Wording& text) {
  return fmt::format("stop that process, or choose another {}", text.key);
}

// Of a file that somebody else put there, and locked.
std::string note_of_owner(const FileDescriptor& file, const fs::path& path) {
  struct stat found {};
  if (::fstat(file.get(), &found) != 0 || found.st_uid == ::geteuid()) return "";
  return fmt::format(" ({} is {})", path.string(), kind_text(found));
}

struct OpenLock {
  FileDescriptor file;
  bool is_proven = true;  // false: nothing keeps others from doing the same
};

OpenLock open_locked(const std::string& what, const fs::path& path, const RunLock::Wording& text) {
  FileDescriptor file = open_or_create(path);
  const Locked locked = try_lock(file, LOCK_EX, path,
                                 "only the beat in this file shows that two processes work in one "
                                 "folder; the first process notices it when it saves");
  if (locked == Locked::kBusy) {
    const std::string holder = read_lock(file).holder;
    fail(ErrorCode::kBusy, "{} is in use by {}{}: {}", what,
         holder.empty() ? "another process" : holder, note_of_owner(file, path), advice_of(text));
  }
  return {std::move(file), locked == Locked::kTaken};
}

}  // namespace

RunHolder run_holder(const fs::path& folder) {
  const fs::path path = folder / ".lock";
  const std::optional<FileDescriptor> file = open_if_there(path);
  if (!file) return RunHolder::kNobody;
  const LockText text = read_lock(*file);
  if (text.pid() == 0) return RunHolder::kNobody;
  if (!text.names_this_host()) return RunHolder::kUnknown;
  const bool is_gone = holder_state(text.pid(), path) == HolderState::kGone;
  return is_gone ? RunHolder::kNobody : RunHolder::kThisMachine;
}

RunLock::RunLock(const fs::path& folder, const Wording& text, const BeatTimes& times)
    : what_(fmt::format("{} {}", text.folder, folder.string())) {
  const fs::path path = folder / ".lock";
  OpenLock lock;
  do {
    make_folders(folder);
    lock = open_locked(what_, path, text);
  } while (!still_names(path, lock.file));  // the next process may have created another one
  file_ = std::move(lock.file);
  if (!text.names_holder) return;
  require_left(path, lock.is_proven, what_, advice_of(text), times);
  beat_ = std::make_unique<LockBeat>(path, text.holder_note, times);
}

void RunLock::require() const {
  if (beat_) beat_->require(what_);
}

}  // namespace skein
