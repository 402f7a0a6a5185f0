// Text that spells special tokens, such as "<|im_start|>" of a rendered conversation.
#pragma once

#include <cstdint>
#include <string>

#include "skein/data/corpus/corpus.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

struct SpecialText {
  int64_t documents = 0;  // that spell one
  int64_t looked_at = 0;  // documents
  std::string example;    // a token
  int64_t document = -1;  // which has the example
};

// Looks at the first documents, up to `most_bytes` of text.
SpecialText find_special_text(const Corpus& corpus, const Tokenizer& tokenizer,
                              int64_t most_bytes = int64_t{16} << 20);

}  // namespace skein
