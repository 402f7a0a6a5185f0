// What one pass computes of every document for deduplication: hashes, band keys, passages, and
// which evaluation sets it shares an n-gram with.
//
// Memory   the results of a batch
// Threads  a DocumentSigner is one thread's
#pragma once

#include <cstdint>
#include <vector>

#include "skein/prepare/dedup/dedup.h"
#include "skein/prepare/dedup/document_table.h"

namespace skein {

struct BatchSignatures {
  std::vector<DocumentEntry> entries;    // a document each
  std::vector<uint64_t> sets;            // by which it is contaminated, a bit each
  std::vector<KeyValue> band_keys;       // (key, document); of contaminated ones none
  std::vector<KeyValue> passage_hashes;  // likewise
};

class DocumentSigner {
 public:
  DocumentSigner(const DedupOptions& options, const EvaluationSets& evaluation);
  BatchSignatures sign(const DocumentBatch& batch);

 private:
  // Reads the words of `text`; returns the sets that it is contaminated by.
  uint64_t read_words(std::string_view text);

  const DedupOptions& options_;
  const EvaluationSets& evaluation_;
  WordHasher words_;
  NgramHasher ngrams_, contamination_ngrams_;
  MinHasher minhash_;
  PassageHasher passages_;
  Hash128 hash_of_words_;
  std::vector<uint64_t> keys_;
};

}  // namespace skein
