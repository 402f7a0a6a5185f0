// Paths written by a person: expands the home folder, and checks whether a folder can be used.
#pragma once

#include <string>

#include "skein/base/files/file.h"

namespace skein {

// Replaces the `~` of `~` and `~/x` by the home folder ($HOME). A shell does so only where a word
// begins with the tilde, never in `--set run.dir=~/x` or in a file. Other paths are returned
// unchanged.
// Errors  kUsage for the home of another user (`~name/x`), and if $HOME is not set; they begin with
//         `setting`, the name of the setting with this value: "run.dir", "--out".
std::string expand_home(const std::string& path, const std::string& setting);

// Throws Error{kUsage} if `path` can neither be written into nor, if it does not exist, be created:
// a file in its place or in its parents' place, no permission, a read-only file system. Leaves
// nothing behind. `setting` as above.
void require_writable_folder(const fs::path& path, const std::string& setting);

}  // namespace skein
