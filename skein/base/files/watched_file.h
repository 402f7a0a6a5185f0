// A file that is mapped for as long as a process reads it, and that nobody may change meanwhile.
//
// Rules    a file is changed where its size or its time of modification is not what it was when it
//          was opened. One whose name is gone, or names another file by now, is not: the map holds
//          the file that was opened
// Limits   of files beyond half of the descriptors that a process may have, what was renamed and
//          then changed is not noticed: they are looked at by their names alone
// Errors   kIo | kNotFound | kNoSpace, as base/files/file.h; reading what was cut: lost_pages.h
// Threads  several may call const functions at once
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>

#include "skein/base/files/file.h"
#include "skein/base/files/lost_pages.h"

namespace skein {

class WatchedFile {
 public:
  WatchedFile() = default;
  explicit WatchedFile(const fs::path& path);

  std::span<const std::byte> bytes() const { return map_.bytes(); }
  void forget(std::span<const std::byte> part) const { map_.forget(part); }

  // Before and after its bytes are read, so that a check in between misses nothing.
  void note_read() const {
    if (is_read_ && !*is_read_) *is_read_ = true;  // reading a flag that threads share is cheap
  }
  // Looks at a file that was read since the last call. Throws Error{kInvalid} where it is changed.
  // Returns what became of its name, "was removed", or nothing.
  std::string check() const;

 private:
  FileDescriptor file_;
  struct stat opened_ {};
  MappedFile map_;
  MappedRegion region_;  // of the map, so it goes first
  std::unique_ptr<std::atomic<bool>> is_read_;
};

}  // namespace skein
