// The tokenizer of a source of weights.
//
// Errors  Error{kNotFound} if the source has none, and those of Tokenizer::load
#pragma once

#include <memory>

#include "skein/data/tokenizer/tokenizer.h"
#include "skein/weights/model_source.h"

namespace skein {

std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& source);

}  // namespace skein
