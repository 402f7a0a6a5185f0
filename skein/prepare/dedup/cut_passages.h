// Writes the texts that are left of documents with repeated passages, beside the pieces that hold
// the documents.
//
// Format   STEM.cut    the texts one after another, without empty ones
//          STEM.cuts   a CutRow for each of them
// Errors   Error{kIo | kNoSpace | kNotFound} naming the file
// Memory   chunks of partitions.h, and a few MiB a thread
// Threads  `num_threads`, a piece each
#pragma once

#include <cstdint>
#include <functional>

#include "skein/prepare/dedup/document_keys.h"
#include "skein/prepare/dedup/repeated_passages.h"

namespace skein {

struct CutRow {
  uint64_t document = 0;  // its number among all
  uint64_t num_bytes = 0;
};

struct CutCounts {
  int64_t num_passages = 0;
  int64_t num_bytes = 0;
  RemovalCounts emptied;  // documents without words, then; their bytes are of those that were cut
};

// `cuts` as find_repeated() leaves them. Documents of which nothing is left are added to
// `removals`.
CutCounts cut_passages(const Pieces& pieces, const Partitions& cuts, Passage passage,
                       int num_threads, Removals& removals,
                       const std::function<void(size_t)>& on_documents);

fs::path cut_text_of(const fs::path& stem);
fs::path cut_rows_of(const fs::path& stem);

}  // namespace skein
