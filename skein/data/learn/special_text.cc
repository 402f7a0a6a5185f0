#include "skein/data/learn/special_text.h"

namespace skein {

SpecialText find_special_text(const Corpus& corpus, const Tokenizer& tokenizer,
                              int64_t most_bytes) {
  SpecialText found;
  const AddedTokens& special = tokenizer.special_tokens();
  if (!special.any(true)) return found;
  int64_t bytes = 0;
  while (found.looked_at < corpus.num_documents() && bytes < most_bytes) {
    const int64_t document = found.looked_at++;
    const HeldText text = corpus.part(document, 0, most_bytes - bytes);
    bytes += static_cast<int64_t>(std::string_view(text).size());
    const AddedToken* const token = special.first(text, true);
    if (token == nullptr) continue;
    if (found.documents++ > 0) continue;
    found.example = token->text;
    found.document = document;
  }
  return found;
}

}  // namespace skein
