// Files that the processes of one user on one machine share by name: in /dev/shm/skein-<user id>, a
// folder of mode 0700 of this user, so that nobody else can put a file there under a name that he
// can guess. Where /dev/shm cannot be written to, it lies in /tmp, else in TMPDIR.
//
// Checks   of the folder: no link, its owner, its mode. Of a file: a regular one, its owner, no
//          second name, mode 0600. They are made on what was opened, not on names
// Errors   Error{kIo} naming the folder or file, what is there and its owner, and what helps
// Source   CWE-377, CWE-59; open(2), O_NOFOLLOW
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

class OwnFolder {
 public:
  // Makes it, or finds it.
  OwnFolder();
  // The same in the first of `places` that can be written to.
  explicit OwnFolder(const std::vector<fs::path>& places);

  const fs::path& path() const { return path_; }

  // Opens a file of this name for reading and writing; creates it where it is absent.
  FileDescriptor open(const std::string& name) const;
  // Whether the name still leads to that file.
  bool still_names(const std::string& name, const FileDescriptor& file) const;
  // Nothing happens where it is absent.
  void remove(const std::string& name) const noexcept;

 private:
  fs::path path_;
  FileDescriptor folder_;
};

}  // namespace skein
