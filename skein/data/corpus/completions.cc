#include "skein/data/corpus/completions.h"

#include <fmt/format.h>

#include <algorithm>

namespace skein {

Completions find_completions(const Corpus& corpus, int64_t most_documents) {
  Completions found{.looked_at = std::min(corpus.num_documents(), most_documents)};
  for (int64_t i = 0; i < found.looked_at; ++i)
    found.without += corpus.loss_spans(i).empty() ? 1 : 0;
  return found;
}

std::string missing_completions_text(const Completions& found, const Corpus& corpus) {
  if (found.without == 0) return "";
  return fmt::format(
      "{} of {}{} documents have no completion: expected messages whose role is `assistant`, or "
      "{{% generation %}} blocks of the template that write something",
      found.without, found.looked_at == corpus.num_documents() ? "" : "the first ",
      found.looked_at);
}

}  // namespace skein
