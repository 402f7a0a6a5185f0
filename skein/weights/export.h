// `skein checkpoint export`: a Hugging Face folder that transformers loads as it is.
#pragma once

#include "skein/weights/model_source.h"

namespace skein {

// Writes config.json, generation_config.json, model*.safetensors in the stored dtype (the master
// copies rounded are the weights themselves) and the tokenizer's files to the new folder `out`.
// Throws Error{kUnsupported} for a tokenizer whose ids transformers would not give.
void export_hugging_face(const ModelSource& source, const fs::path& out,
                         bool with_tokenizer = true);

}  // namespace skein
