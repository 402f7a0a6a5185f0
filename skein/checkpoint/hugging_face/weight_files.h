// Which files of a Hugging Face folder hold its weights.
//
// Order    as transformers: model.safetensors, model.safetensors.index.json, pytorch_model.bin,
//          pytorch_model.bin.index.json; then shards N-of-M without an index, if all M are there
// Errors   Error{kNotFound | kInvalid | kUnsupported} that names what lies in the folder instead
//          and one command that helps: an adapter, other formats, missing shards
// Source   transformers, modeling_utils.py and utils/__init__.py; peft, config.py
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct WeightFiles {
  std::vector<std::string> files;  // names in the folder
  // tensor -> file, of an index; empty where every tensor of every file counts.
  std::map<std::string, std::string> weight_map;
  std::string index;  // the name of the index; empty where there is none
  std::string note;   // what a user should know, a line; else empty
};

WeightFiles find_weight_files(const fs::path& folder);

// Parses {"weight_map": {tensor: file}} and checks that every file is a plain name in the folder
// that ends in `suffix`. `unknown`, if given, gets the keys beside that are in no table
// (base/text/foreign_keys.h).
std::map<std::string, std::string> parse_hugging_face_index(
    std::string_view text, const std::string& what, std::string_view suffix = ".safetensors",
    std::vector<std::string>* unknown = nullptr);

// Throws Error{kUnsupported} where the folder is that of an adapter (LoRA and others of PEFT): its
// weights are not those of a model.
void refuse_adapter(const fs::path& folder);

// Throws where a folder without config.json holds weights: an adapter, another format, or a model
// whose config.json is missing.
void refuse_weights_alone(const fs::path& folder);

// A name from outside, escaped and shortened for a message.
std::string quoted_name(const std::string& text);

}  // namespace skein
