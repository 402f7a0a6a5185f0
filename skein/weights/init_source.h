// May a run begin with these weights (model.init_from)? Only where its model reads them as they
// were trained: a bias that is left out, or another rotary embedding, is a worse model, not an
// error that anybody would see.
//
// Refused  Error{kUsage}, with both values: sizes and constants of the model, and the tokenizer,
//          that differ from the source's, unless `accepted` (run.accept_changes) names them
//          Error{kInvalid}: a tensor that is missing, of another shape, or that would be left out
#pragma once

#include <string>

#include "skein/data/tokenizer.h"
#include "skein/weights/model_source.h"

namespace skein {

void check_source(const ModelSource& source, const DecoderConfig& model, const Tokenizer& tokenizer,
                  const std::string& accepted);

// The last of these alone: what holds wherever weights are read, for scoring and export as well.
void check_tensors(const ModelSource& source, const DecoderConfig& model);

}  // namespace skein
