// What deduplication keeps of every document while it reads the others: hashes and size, on disk.
//
// Disk     40 bytes a document, in a temporary file without a name beside the output
// Memory   1 MiB, and as much for each for_each()
// Errors   Error{kIo | kNoSpace} naming the file
// Threads  several at once, of different documents to write
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>

#include "skein/base/numbers/hash.h"
#include "skein/data/corpus/spool.h"

namespace skein {

struct DocumentEntry {
  Hash128 text;   // xxh3-128 of the text
  Hash128 equal;  // documents with the same are equal: of the text, or of its words
  uint64_t num_bytes = 0;
};

// Whether `a` stays rather than `b`: the longer text, and of texts as long the one with the smaller
// hash. Of two equal texts neither does; the earlier one stays then.
inline bool is_preferred(const DocumentEntry& a, const DocumentEntry& b) {
  if (a.num_bytes != b.num_bytes) return a.num_bytes > b.num_bytes;
  return a.text < b.text;
}

class DocumentTable {
 public:
  DocumentTable(const fs::path& out, uint64_t num_documents);
  void write(uint64_t first_document, std::span<const DocumentEntry> entries);

  uint64_t size() const { return num_documents_; }
  DocumentEntry at(uint64_t document) const;
  // The documents from `begin` to before `end`, in order.
  void for_each(
      uint64_t begin, uint64_t end,
      const std::function<void(uint64_t document, const DocumentEntry& entry)>& visit) const;

 private:
  Spool spool_;  // its file alone
  uint64_t num_documents_;
};

}  // namespace skein
