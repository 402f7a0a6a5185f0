// generation_config.json: which tokens end a text, and how the next one is drawn.
//
// Used     eos_token_id, do_sample, temperature, top_p, top_k
//          (base/text/foreign_keys_generation.def)
// Errors   Error{kInvalid} naming the file and the key
// Source   transformers' GenerationConfig
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/weights/model_source.h"

namespace skein {

struct GenerationDefaults {
  std::string file;               // empty: there is none
  std::vector<int64_t> eos_ids;   // of the file, else of the model's config.json
  std::optional<bool> do_sample;  // false: always the likeliest token
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k;
  std::vector<std::string> unused;  // other keys that would change which token is drawn
};

GenerationDefaults generation_defaults(const ModelSource& source);

}  // namespace skein
