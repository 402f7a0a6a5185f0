// Paths that a person wrote: the home folder in them, and whether a folder can be used.
#pragma once

#include <string>

#include "skein/base/file.h"

namespace skein {

// `~` and `~/x` with the home folder ($HOME) put in: a shell does so only where a word begins with
// the tilde, never in `--set run.dir=~/x` or in a file. Anything else is returned as it is.
// Errors  kUsage for the home of another user (`~name/x`), and where there is no $HOME; they begin
//         with `setting`, which says whose value it is: "run.dir", "--out".
std::string expand_home(const std::string& path, const std::string& setting);

// Throws Error{kUsage} where `path` can neither be written into nor, where it is not there yet, be
// created: a file in its place or in its parents' place, no permission, a read-only file system.
// Creates nothing. `setting` as above.
void require_writable_folder(const fs::path& path, const std::string& setting);

}  // namespace skein
