// flock on files, of which some file systems have none, and others one a machine.
//
// Rules    a lock is tried and never waited for. A file system without locks (ENOSYS, EOPNOTSUPP,
//          ENOLCK: Lustre without `-o flock`, some in user space) is a warning, once for each file
//          system and meaning, and the caller continues. NFS with `local_lock`, and Lustre with
//          `localflock`, grant a lock on every machine: only the caller's second line can tell
//          (checkpoint/find/lock_beat.h)
// Errors   Error{kIo} naming the path, for any other errno
// Source   flock(2), nfs(5), mount.lustre(8)
#pragma once

#include <string>

#include "skein/base/files/file.h"

namespace skein {

enum class Locked {
  kTaken,
  kBusy,   // another process holds it
  kNever,  // this file system has no locks
};

// `operation`: LOCK_SH or LOCK_EX. `meaning`: what may happen without locks, as a clause for the
// warning.
Locked try_lock(const FileDescriptor& file, int operation, const fs::path& path,
                const std::string& meaning);

// False if somebody removed or replaced the file after it was opened: a lock on it locks nobody
// out.
bool still_names(const fs::path& path, const FileDescriptor& file);

// "the file system at /scratch (lustre)"; "its file system" where it cannot be found out.
std::string file_system_of(const fs::path& path);

}  // namespace skein
