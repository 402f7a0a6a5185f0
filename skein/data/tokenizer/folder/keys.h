// The keys of the files of a tokenizer's folder, beside the one that decides its ids.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

// A line for each JSON file that has keys which Skein does not know (base/text/foreign_keys.h).
// `files`: of the folder (Tokenizer::files).
std::vector<std::string> unknown_tokenizer_keys(std::span<const fs::path> files);

}  // namespace skein
