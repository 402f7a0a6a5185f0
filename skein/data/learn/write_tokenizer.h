// Writes the files of a tokenizer, in place of another one.
//
// Rule     After a kill at any moment a folder holds the old tokenizer or the new one, whole: the
//          new folder is written beside it, and the names are exchanged. Where the folder holds
//          other files too, or cannot be exchanged (a mount, a parent that nobody may write), all
//          is written inside it before the first old file goes; in a bucket, the model goes first
//          and comes last, so that a part of a tokenizer is not taken for one.
// Left     what killed processes left beside it, or in it, is removed and logged
//          (base/shared/partials.h)
// Errors   Error{kIo | kNoSpace}, naming the path
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

// `out_dir`: a folder, or s3://…
void write_tokenizer(const fs::path& out_dir, const std::map<std::string, std::string>& files);

// The files of a tokenizer that `out_dir` already holds.
std::vector<fs::path> tokenizer_files_in(const fs::path& out_dir);

}  // namespace skein
