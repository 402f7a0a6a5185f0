// The value of a Hugging Face key in [model] as JSON.
#pragma once

#include <optional>

#include "skein/base/text/json.h"
#include "skein/base/text/toml.h"
#include "skein/model/decoder.h"

namespace skein {

// Nothing where it is no value of that kind. Whole numbers may be written as floats.
std::optional<Json> model_key_value(const toml::node& node, ModelKey::Kind kind);

}  // namespace skein
