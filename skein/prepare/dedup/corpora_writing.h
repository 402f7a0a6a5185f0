// Writes the documents that stay: one corpus, or several that are the one in parts, in its order.
//
// Parts    of about as many bytes of text (before passages were cut), and a document at least.
//          Where they begin depends on the documents that stay and their order, not on their files.
// Errors   Error{kIo | kNoSpace} naming the file; Error{kUsage} for more parts than documents
// Memory   6 MiB a thread
// Threads  a corpus each
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/prepare/dedup/document_keys.h"

namespace skein {

struct CorpusPart {
  fs::path path;
  std::string made_from;        // CorpusSources
  std::string shard_of;         // shard_set.h
  uint64_t begin = 0, end = 0;  // documents, of which those stay that are not removed
};

// Sets where the parts begin and end. `table` and `removals` are of all documents. Returns how many
// stay, and their bytes before passages were cut; of none there are no parts.
RemovalCounts divide_documents(const DocumentTable& table, const Removals& removals,
                               std::vector<CorpusPart>& parts);

struct WriteHooks {
  // Of each document that stays, with its text before passages were cut, by any thread.
  std::function<void(uint64_t document, std::string_view text)> on_kept;
  std::function<void(size_t num_documents, size_t num_bytes)> on_documents;  // by any thread
};

// `has_cuts`: cut_passages() was there before. Returns what was written.
RemovalCounts write_corpora(const Pieces& pieces, const std::vector<CorpusPart>& parts,
                            const Removals& removals, bool has_cuts, int num_threads,
                            const WriteHooks& hooks);

}  // namespace skein
