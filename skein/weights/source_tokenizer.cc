#include "skein/weights/source_tokenizer.h"

#include "skein/base/error.h"

namespace skein {

std::unique_ptr<Tokenizer> tokenizer_of(const ModelSource& source) {
  if (source.tokenizer().empty()) {
    fail(ErrorCode::kNotFound,
         "{} has no tokenizer: expected a tokenizer.model or tokenizer.json in it",
         source.path().string());
  }
  return Tokenizer::load(source.tokenizer());
}

}  // namespace skein
