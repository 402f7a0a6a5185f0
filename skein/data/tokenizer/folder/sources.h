// The tokenizer.json that the files of other formats amount to, as transformers converts them.
//
// Format   vocab.json with merges.txt  GPT-2's or, by tokenizer_class, Qwen 2's pattern
//          tekken.json                 Mistral's: special tokens, then tokens by rank
//          *.tiktoken, tokenizer.model lines of a token in base64 and its rank. The file has no
//                                      pattern: it is known by its name or its number of ranks
// Errors   Error{kCorrupt | kUnsupported} naming the file, and what converts it
// Source   https://github.com/mistralai/mistral-common: tokens/tokenizers/tekken.py;
//          https://github.com/openai/tiktoken: load.py; https://github.com/meta-llama/llama3:
//          llama/tokenizer.py; transformers: convert_slow_tokenizer.py
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"
#include "skein/data/tokenizer/byte_level/byte_level_model.h"

namespace skein {

class TokenizerFolder;

struct TokenizerSource {
  std::string json;  // a tokenizer.json
  std::string bos;   // the token that the format puts before a text; empty: none
  std::string eos;   // behind it
  bool is_made = false;
};

// Of a tokenizer.json: its text.
TokenizerSource read_tokenizer_source(const fs::path& file, const TokenizerFolder& folder);

// Of vocab.json, with the merges.txt beside it.
TokenizerSource read_vocabulary_source(const fs::path& file, const TokenizerFolder& folder);

// The same of the bytes of a tekken.json or tiktoken file; `where` replaces its path in errors.
TokenizerSource tokenizer_source_of(std::string_view name, const std::string& bytes,
                                    const std::string& where);

// The id of source.eos; -1: none.
int32_t source_end(const TokenizerSource& source, const ByteLevelModel& model);

// With what the source was made to, transformers gives the same ids: tokenizer.json in place of the
// files that it was made of, and a tokenizer_config.json that names no class with rules of its own.
void add_made_files(const TokenizerSource& source, std::map<std::string, std::string>& contents);

// transformers 5 rebuilds the tokenizers of some classes from vocabulary and merges, and puts a
// space before texts as `add_prefix_space` of tokenizer_config.json says. Throws Error{kInvalid}
// where that contradicts `json`, a tokenizer.json.
void check_prefix_space(const TokenizerFolder& folder, const std::string& json,
                        const ByteLevelModel& model);

// The class of transformers 5 that may give other ids than the tokenizer.json among `files` of a
// folder, since it takes nothing but vocabulary and merges from there; "": none does. `of_model`:
// the class that is taken whatever the folder says; "": the folder's.
std::string class_of_other_ids(const std::map<std::string, std::string>& files,
                               const std::string& of_model);

// Whether a JSON file of this name is Mistral's.
bool is_tekken_name(std::string_view name);

// Whether the first bytes of a tokenizer.model are tiktoken's, not SentencePiece's.
bool is_tiktoken(std::string_view head);

}  // namespace skein
