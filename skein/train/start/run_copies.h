// What a run keeps of its tokenizer and of the model that it began with: <run>/tokenizer and
// <run>/generation_config.json (docs/run_folder.md). In a bucket both lie beside the checkpoints,
// which may be all that is left of the run.
//
// Errors   Error{kIo | kNoSpace} naming the path
#pragma once

#include "skein/base/files/file.h"
#include "skein/config/config.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

constexpr std::string_view kTokenizerFolder = "tokenizer";

// Replaces the copy as a whole where files changed, and says which.
void keep_tokenizer(const Config& config, const Tokenizer& tokenizer);

// Throws Error{kUsage} where the folder, if it is there, holds what no copy of a tokenizer does.
void check_tokenizer_copy(const fs::path& folder);

// Of model.init_from: the weights begin there, and so do the ids that end a text and the defaults
// for drawing. Call it when the run begins: later the source may be gone, or another. Checkpoints
// that lie elsewhere have it beside them, too.
void keep_generation_config(const Config& config);

}  // namespace skein
