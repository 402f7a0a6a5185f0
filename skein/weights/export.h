// `skein checkpoint export`: writes a Hugging Face folder that transformers loads without changes.
#pragma once

#include "skein/weights/model_source.h"

namespace skein {

// Writes config.json, generation_config.json, model*.safetensors in the stored dtype (the weights
// are the rounded master copies) and the tokenizer's files to the new folder `out`. Throws
// Error{kUnsupported} for a tokenizer to which transformers would give other ids.
void export_hugging_face(const ModelSource& source, const fs::path& out,
                         bool with_tokenizer = true);

}  // namespace skein
