// The folder of a sweep, which holds a folder for each of its runs: 0000, 0001, ...
#pragma once

#include <string>

#include "skein/base/files/file.h"

namespace skein {

// "; it holds the runs of a sweep: name one, such as FOLDER/0000", to stand behind an error that
// wants the folder of one run; "" where `folder` holds no such runs.
std::string sweep_advice(const fs::path& folder);

}  // namespace skein
