// How many documents of conversations say nothing that the loss of completions counts.
#pragma once

#include <cstdint>
#include <string>

#include "skein/data/corpus/corpus.h"

namespace skein {

struct Completions {
  int64_t without = 0;    // documents that have none
  int64_t looked_at = 0;  // documents
};

// Looks at the first documents. The corpus has loss spans.
Completions find_completions(const Corpus& corpus, int64_t most_documents = 100'000);

// "3 of the first 100000 documents have no completion: …"; "" where all have one.
std::string missing_completions_text(const Completions& found, const Corpus& corpus);

}  // namespace skein
