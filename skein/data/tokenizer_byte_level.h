// The tokenizer of a tokenizer.json with byte-level BPE; see tokenizer.h and byte_level_model.h.
//
// BOS  what the file's template puts before a text; none otherwise, whatever bos_token says
// EOS  `eos_token` of the tokenizer_config.json beside it, or of special_tokens_map.json; none
//      where neither says
#pragma once

#include <memory>
#include <vector>

#include "skein/data/tokenizer.h"

namespace skein {

// `files` are what a run keeps, `json` among them.
std::unique_ptr<Tokenizer> load_byte_level_tokenizer(const fs::path& json,
                                                     std::vector<fs::path> files);

}  // namespace skein
