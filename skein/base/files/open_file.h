// Opens files under names that somebody else may have made: an archive from elsewhere, a folder
// that others can write to, a run folder on a shared disk. The one place that calls open() for
// them; scripts/lint.sh lists who else may.
//
// Rules    nothing waits: a FIFO without a writer, or a device, would hold open() up for ever, and
//          SIGTERM with it. What was opened is looked at afterwards, never the name before
// Errors   Error{kNotFound | kIo | kNoSpace} naming the path and errno; Error{kInvalid} naming what
//          is there instead of a regular file, and its owner: "a FIFO of bob (1002)"
// Absence  only ENOENT and ENOTDIR mean that there is no such file. Whatever else keeps a name from
//          being looked at (EIO, ESTALE, EACCES, EMFILE) is an error
// Modes    what is created has mode 0644 less the umask; what only this user's own processes read
//          (secrets, records of the rendezvous) 0600 (docs/run_folder.md)
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

// Whether this errno says that there is no such file.
bool is_absence(int error_number);

// A regular file, for reading.
FileDescriptor open_to_read(const fs::path& path);
// The same for the file `name` of a folder that is open; `path` stands for it in errors.
FileDescriptor open_to_read(const FileDescriptor& folder, const std::string& name,
                            const fs::path& path);
// The same where it is there; nothing where it is absent.
std::optional<FileDescriptor> open_if_there(const fs::path& path);
// What a person named to be read once from its beginning: a regular file, a pipe (<(zcat x), a
// FIFO, whose first writer is waited for) or a character device (/dev/stdin).
FileDescriptor open_stream(const fs::path& path);
// A regular file that is there, for reading and writing.
FileDescriptor open_to_change(const fs::path& path);
// The same, which is created where it is absent. The name may be no symbolic link: what is written
// would go where somebody else says.
FileDescriptor open_or_create(const fs::path& path, mode_t mode = 0644);
// For appending, created where it is absent: a regular file, or a device such as /dev/null.
FileDescriptor open_to_append(const fs::path& path);
// The same for reading as well. `create`: where it is absent.
FileDescriptor open_lines(const fs::path& path, bool create);
// A file that must not be there yet, for writing and reading.
FileDescriptor create_new(const fs::path& path, mode_t mode = 0644);
// A folder, to open files in it or to make changes of it durable.
FileDescriptor open_folder(const fs::path& path);

// Throws Error{kInvalid} unless `status`, of the file `path`, is that of a regular file.
void require_regular(const struct stat& status, const fs::path& path);
// The whole text of a regular file; nothing where it is absent.
std::optional<std::string> read_file_if_there(const fs::path& path,
                                              int64_t max_bytes = int64_t{1} << 30);
// Whether the name leads to a file, folder or anything else. Error{kIo}: that cannot be said.
bool is_there(const fs::path& path);
// The same for a folder.
bool is_folder_there(const fs::path& path);

// "bob (1002)", or "user 1002" where the number has no name here.
std::string owner_text(uid_t owner);
// "a FIFO of bob (1002)".
std::string kind_text(const struct stat& status);

}  // namespace skein
