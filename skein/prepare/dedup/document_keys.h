// What is sorted and clustered: the signatures of all pieces, as keys with numbers of documents.
//
// Order    a document's number is its place among all, in the order of the inputs
// Memory   a quarter of `memory_bytes` while keys are added; then as clusters.h and partitions.h
//          have it, at most three quarters together
// Disk     40 bytes a document, 16 for each of its keys and passages, in files without names
// Errors   as signature_file.h, partitions.h and check_cluster_memory() have
// Threads  `num_threads`
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "skein/prepare/dedup/clusters/clusters.h"
#include "skein/prepare/pieces.h"

namespace skein {

struct DocumentKeys {
  DocumentKeys(const fs::path& out, uint64_t num_documents, int64_t memory_bytes);

  DocumentTable table;
  Partitions equal, bands, passages;  // of documents that are not contaminated
  Removals removals;                  // the contaminated ones
  RemovalCounts contaminated;
  std::vector<int64_t> contaminated_by_set;
};

// The first document of each piece, and behind them the number of all documents.
std::vector<uint64_t> first_documents(const Pieces& pieces);

// Adds the signatures of all pieces. `on_documents` is told how many were added, by any thread.
void add_signatures(const Pieces& pieces, bool with_equal_keys, int num_threads, DocumentKeys& keys,
                    const std::function<void(size_t)>& on_documents);

}  // namespace skein
