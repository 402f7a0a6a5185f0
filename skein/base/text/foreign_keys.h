// The keys of other programs' JSON files, a table a file: each is used, must have a value that
// Skein computes with, or does not matter, with the reason. A key of no row is one that nobody
// looked at; whoever reads the file names it in a line.
//
// Source  transformers 5.24, configuration_*.py, generation/configuration_utils.py and
//         tokenization_utils_base.py; tokenizers 0.23; peft 0.18
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

enum class ForeignJson {
  kConfig,            // config.json
  kGenerationConfig,  // generation_config.json
  kTokenizerConfig,   // tokenizer_config.json
  kSpecialTokensMap,  // special_tokens_map.json
  kTokenizer,         // tokenizer.json
  kWeightIndex,       // model.safetensors.index.json, pytorch_model.bin.index.json
};

enum class KeyUse {
  kUsed,     // read, or refused by its reader
  kOnly,     // must have one of `values`, or be null
  kIgnored,  // does not matter
  kDraws,    // changes which token is drawn, unless it has one of `values` or is null
};

struct ForeignKey {
  std::string_view key;
  KeyUse use;
  std::string_view why;     // of kOnly and kIgnored
  std::string_view values;  // of kOnly and kDraws: a JSON array
};

std::span<const ForeignKey> foreign_keys(ForeignJson file);

// nullptr for a key that no row names.
const ForeignKey* find_foreign_key(ForeignJson file, std::string_view key);

// Whether the value is one of row.values, or null.
bool is_one_of(const ForeignKey& row, const Json& value);

// Throws Error{kUnsupported} where a key has a value that Skein does not compute with. `what` names
// the file.
void check_foreign_values(ForeignJson file, const Json& object, const std::string& what);

// The keys of the object that no row names, sorted.
std::vector<std::string> unknown_keys(ForeignJson file, const Json& object);

// A line for people: "config.json: Skein does not know what 'x' means, and 2 more …"; "" for none.
std::string unknown_keys_text(const std::string& what, const std::vector<std::string>& unknown);

}  // namespace skein
