// Git LFS pointers: the small text files that stand for large ones where a repository was cloned
// without git-lfs.
//
// Source  the specification of git-lfs, version 1
#pragma once

#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

// Whether a file that begins so is a pointer.
bool is_lfs_pointer(std::string_view head);

// The same of a file of the disk; false where it cannot be read. Reads files of up to 1,024 bytes
// alone, the most that a pointer has.
bool is_lfs_pointer_file(const fs::path& path);

// Throws Error{kInvalid} that names `where` if `head` is a pointer's.
void refuse_lfs_pointer(std::string_view head, const std::string& where);

// "a Git LFS pointer, not the file: `git lfs pull` in its repository brings it"
extern const char* const kLfsAdvice;

}  // namespace skein
