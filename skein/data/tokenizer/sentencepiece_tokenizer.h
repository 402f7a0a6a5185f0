// The tokenizer of a SentencePiece model, with what the files beside it add: see tokenizer.h.
//
// Added tokens  of tokenizer.json, tokenizer_config.json and added_tokens.json. Their ids follow
//               those of the model. Those that are not special are found in a text
// Space         before a text, and before each part between added tokens where the normalizer of
//               tokenizer.json or `legacy` says so
// BOS, EOS      bos_token and eos_token where a file names them, else the model's own; no BOS where
//               add_bos_token is false and there is no tokenizer.json
// Errors        Error{kInvalid} where the files contradict each other, naming both
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

// `model` are the bytes of tokenizer.model; `files` are what a run keeps, the model among them.
std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(std::string_view model,
                                                        const std::string& name,
                                                        std::vector<fs::path> files);

}  // namespace skein
