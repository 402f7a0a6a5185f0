// Which documents go, of those that are equal and of those that are near duplicates.
//
// Formula  near duplicates are the connected components of the graph that joins any two documents
//          with a common band key (minhash.h). Of a component, and of equal documents, that stays
//          which is_preferred (document_table.h): a function of the texts alone, whatever the order
//          of the documents and the number of threads. It is the longest, so that no text is lost
//          where others are parts of it.
// Memory   8 bytes a document, and an eighth
// Errors   Error{kUsage} if that is more than the memory given
// Threads  one at a time
#pragma once

#include <cstdint>
#include <vector>

#include "skein/prepare/dedup/document_table.h"
#include "skein/prepare/dedup/partitions.h"

namespace skein {

// Throws Error{kUsage} if clustering `num_documents` takes more than `memory_bytes`.
void check_cluster_memory(int64_t num_documents, int64_t memory_bytes);

struct DuplicateCluster {
  uint64_t survivor = 0;
  int64_t num_documents = 0;
};

class Removals {
 public:
  void resize(uint64_t num_documents) { is_removed_.resize(num_documents); }
  bool contains(uint64_t document) const { return is_removed_[document]; }
  void add(uint64_t document) { is_removed_[document] = true; }

 private:
  std::vector<bool> is_removed_;
};

struct RemovalCounts {
  int64_t num_documents = 0;
  int64_t num_bytes = 0;
};

// `keys` holds DocumentEntry::equal.high for every document that is not removed yet. Returns what
// was added to `removals`.
RemovalCounts remove_equal(Partitions& keys, const DocumentTable& table, Removals& removals);

struct NearDuplicates {
  RemovalCounts removed;
  int64_t num_clusters = 0;
  std::vector<DuplicateCluster> largest;  // at most 5, the largest first
};

// `keys` holds the band keys of documents.
NearDuplicates remove_near(Partitions& keys, const DocumentTable& table, Removals& removals);

}  // namespace skein
