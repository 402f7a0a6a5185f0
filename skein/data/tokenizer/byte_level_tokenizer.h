// The tokenizer of a tokenizer.json with BPE, or of the files that one can be made of
// (tokenizer/folder/sources.h); see tokenizer.h and byte_level_model.h.
//
// BOS     what the file's template puts before a text; of files of other formats, where
//         tokenizer_config.json has add_bos_token, bos_token or none, as it says
// EOS     eos_token of special_tokens_map.json or tokenizer_config.json, else eos_token_id of
//         generation_config.json or config.json (tokenizer/folder/ends.h)
// Errors  Error{kInvalid} where added tokens of the files beside it contradict tokenizer.json
#pragma once

#include <memory>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

// `files` are what a run keeps, `json` among them.
std::unique_ptr<Tokenizer> load_byte_level_tokenizer(const fs::path& json,
                                                     std::vector<fs::path> files);

}  // namespace skein
