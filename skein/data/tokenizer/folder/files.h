// Which files of a folder are a tokenizer: the one that holds the vocabulary, and those that count
// beside it.
//
// Vocabulary  the first that is there of tokenizer.model, tokenizer.json, tekken.json, vocab.json
//             with merges.txt, *.tiktoken and tokenizer.model.v3; a tokenizer.model of tiktoken's
//             comes behind tokenizer.json. A file that a person names goes before all of them
// Beside it   tokenizer_config.json, special_tokens_map.json, added_tokens.json and
//             chat_template.jinja, additional_chat_templates/*.jinja; of a tokenizer.model also
//             tokenizer.json, for its added tokens, unless the model was named as a file
// Errors      Error{kNotFound} naming what the folder holds; Error{kInvalid} where several files
//             are as good
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;  // of one of its files

// Kept beside a tokenizer for an id that ends a text, and by runs that began with a model.
constexpr std::string_view kGenerationConfig = "generation_config.json";

// The folder of chat templates that have names; "default" is chat_template.jinja.
constexpr std::string_view kNamedTemplates = "additional_chat_templates";

struct TokenizerFiles {
  fs::path vocabulary;
  std::vector<fs::path> all;  // the vocabulary first
};
TokenizerFiles find_tokenizer_files(const fs::path& folder_or_file);

// Whether a folder, which need not exist, holds a tokenizer.
bool has_tokenizer(const fs::path& folder);

// The files that a tokenizer of a known name may consist of.
std::span<const char* const> tokenizer_file_names();

// Whether a file of this name is part of a tokenizer.
bool is_tokenizer_file(std::string_view name);

// The name under which find_tokenizer_files() finds a copy of this file of a tokenizer in a folder:
// "tokenizer.json", "additional_chat_templates/tools.jinja".
std::string kept_tokenizer_name(const fs::path& file);

}  // namespace skein
