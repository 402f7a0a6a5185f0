// Checks whether a run may begin with given weights (model.init_from). The model must compute with
// them as the one that trained them did: with a bias left out or another rotary embedding it would
// be worse, without any error.
//
// Refused  Error{kUsage}, with both values: sizes and constants of the model, and a tokenizer, that
//          differ from the source's, unless `accepted` (run.accept_changes) names them
//          Error{kInvalid}: a tensor that is missing, has another shape, or would not be used
#pragma once

#include <string>

#include "skein/config/config.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/weights/model_source.h"

namespace skein {

void check_source(const ModelSource& source, const DecoderConfig& model, const Tokenizer& tokenizer,
                  const std::string& accepted);

// Where data.tokenizer is not named, and model.init_from is, takes the source's tokenizer. Returns
// a line that says so; "" where one is named, or nothing could give one.
// Errors  Error{kUsage}: init_from is no folder, or has no tokenizer; those of reading it
std::string take_source_tokenizer(Config& config);

// Where model.init_from is a Hugging Face folder that is there: whether its tensors have the names
// and shapes of the model, which a plan can tell without reading them.
void check_names_of_source(const Config& config, const DecoderConfig& model);

// Only the check of the tensors, which scoring and export need as well.
void check_tensors(const ModelSource& source, const DecoderConfig& model);

}  // namespace skein
