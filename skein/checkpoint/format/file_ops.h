// The durable file operations of a save, each announced to an optional hook first.
//
// Tests use the hook to stop at every point of a save: it is called with the operation's name
// ("create", "write", "sync", "sync_folder", "make_folder", "rename", "exchange", "remove"; of
// objects "create", "write", "finish", "put", "remove") and its path before the operation happens;
// it may throw an Error instead, or end the process. A hook that throws kUnsupported at "exchange"
// simulates a file system that cannot exchange names.
//
// Errors   Error{kNotFound | kIo | kNoSpace} naming the path and errno, as skein/base/files/file.h.
// Threads  a FileOps may be used by several threads if its hook may.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

// A file that is written from its beginning to its end. Dropped before finish() it may stay behind
// in a folder, but does not appear in a bucket.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void finish() = 0;  // makes it durable
};

class FileOps {
 public:
  using Hook = std::function<void(std::string_view operation, const fs::path& path)>;

  explicit FileOps(Hook hook = {}) : hook_(std::move(hook)) {}

  // Creates a file for writing; refuses one that exists.
  FileDescriptor create(const fs::path& path) const;
  // The same for a file, or an object (s3://…), which appears when it is finished.
  std::unique_ptr<OutputFile> open_output(const fs::path& path) const;
  // A small object at once: "put".
  void put_object(const fs::path& url, std::string_view bytes) const;
  void write(int fd, std::span<const std::byte> bytes, const fs::path& path) const;
  void sync(int fd, const fs::path& path) const;
  void sync_folder(const fs::path& folder) const;
  void make_folder(const fs::path& folder) const;
  void rename(const fs::path& from, const fs::path& to) const;
  // Swaps two names atomically; false if the file system cannot.
  bool exchange(const fs::path& a, const fs::path& b) const;
  // Removes a file, or a folder with everything in it; links are removed, not followed. In a
  // bucket, an object, or all those under the name. It is no error if `path` does not exist.
  void remove_tree(const fs::path& path) const;

 private:
  void announce(std::string_view operation, const fs::path& path) const {
    if (hook_) hook_(operation, path);
  }

  Hook hook_;
};

// The folder that holds `path`, "." for a bare name.
fs::path parent_folder(const fs::path& path);

}  // namespace skein
