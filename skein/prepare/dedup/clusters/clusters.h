// Which documents go, of those that are equal and of those that are near duplicates.
//
// Formula  near duplicates are the connected components of the graph that joins any two documents
//          with a common band key (minhash.h). Of a component, and of equal documents, that stays
//          which is_preferred (document_table.h): a function of the texts alone, whatever the order
//          of the documents and the number of threads. It is the longest, so that no text is lost
//          where others are parts of it.
// Memory   8 bytes a document, and an eighth
// Errors   Error{kUsage} if that is more than the memory given
// Threads  `num_threads` each; Removals: several at once
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "skein/prepare/dedup/clusters/document_table.h"
#include "skein/prepare/dedup/clusters/partitions.h"

namespace skein {

// Throws Error{kUnsupported} for 2^32 - 1 documents or more, and Error{kUsage} if clustering so
// many takes more than half of `memory_bytes`.
void check_cluster_memory(int64_t num_documents, int64_t memory_bytes);

struct DuplicateCluster {
  uint64_t survivor = 0;
  int64_t num_documents = 0;
};

// A bit a document.
class Removals {
 public:
  explicit Removals(uint64_t num_documents) : words_(num_documents / 64 + 1) {}
  bool contains(uint64_t document) const {
    return words_[document / 64].load(std::memory_order_relaxed) >> document % 64 & 1;
  }
  void add(uint64_t document) {
    words_[document / 64].fetch_or(uint64_t{1} << document % 64, std::memory_order_relaxed);
  }

 private:
  std::vector<std::atomic<uint64_t>> words_;
};

struct RemovalCounts {
  int64_t num_documents = 0;
  int64_t num_bytes = 0;

  void add(const RemovalCounts& more) {
    num_documents += more.num_documents;
    num_bytes += more.num_bytes;
  }
};

// `keys` holds DocumentEntry::equal.high for every document that is not removed yet. Returns what
// was added to `removals`.
RemovalCounts remove_equal(const Partitions& keys, const DocumentTable& table, Removals& removals,
                           int num_threads);

struct NearDuplicates {
  RemovalCounts removed;
  int64_t num_clusters = 0;
  std::vector<DuplicateCluster> largest;  // at most 5, the largest first
};

// `keys` holds the band keys of documents.
NearDuplicates remove_near(const Partitions& keys, const DocumentTable& table, Removals& removals,
                           int num_threads);

}  // namespace skein
