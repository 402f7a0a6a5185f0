// What must hold of a file before work on it begins.
//
// Errors   Error{kUsage} beginning with `option`, such as --out, or with the input
#pragma once

#include <string>
#include <vector>

#include "skein/base/file.h"
#include "skein/prepare/read/inputs.h"

namespace skein {

// It must be possible to write, and must not replace a file by accident. Makes the folder that it
// lies in.
void check_output(const char* option, const fs::path& path, bool overwrite);

// Whether there is a corpus that was made of this (CorpusSources). The corpus is written last.
bool is_made_from(const fs::path& corpus, const std::string& made_from);

// No input is one of the outputs.
void check_not_outputs(const std::vector<InputFile>& inputs, const std::vector<fs::path>& outputs);

}  // namespace skein
