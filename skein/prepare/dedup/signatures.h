// What is computed of every document for deduplication: hashes, band keys, passages, and which
// evaluation sets it shares an n-gram with. It depends on the document and the options alone, so
// that machines may sign pieces by themselves.
//
// Memory   the results of a batch
// Threads  a DocumentSigner is one thread's
#pragma once

#include <cstdint>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/prepare/dedup/dedup.h"
#include "skein/prepare/dedup/document_pass.h"

namespace skein {

// All options that signatures follow from.
Json signature_key(const DedupOptions& options, const EvaluationSets& evaluation);

class DocumentSigner {
 public:
  DocumentSigner(const DedupOptions& options, const EvaluationSets& evaluation);
  // The records of the documents, one after another, as signature_file.h has them.
  std::vector<uint64_t> sign(const DocumentBatch& batch);

 private:
  void sign(std::string_view text, std::vector<uint64_t>& records);
  // Reads the words of `text`; returns the sets that it is contaminated by.
  uint64_t read_words(std::string_view text);

  const DedupOptions& options_;
  const EvaluationSets& evaluation_;
  bool reads_words_;
  WordHasher words_;
  NgramHasher ngrams_, contamination_ngrams_;
  MinHasher minhash_;
  PassageHasher passages_;
  Hash128 hash_of_words_;
};

struct SigningCounts {
  int64_t num_pieces = 0;  // of this process's share
  int64_t num_signed_before = 0;
};

// Signs the pieces of this process's share that are not signed yet. `on_documents` is called by
// this thread, with documents and bytes.
SigningCounts sign_pieces(const Pieces& pieces, const DedupOptions& options,
                          const EvaluationSets& evaluation, int num_threads,
                          const std::function<void(size_t, size_t)>& on_documents);

}  // namespace skein
