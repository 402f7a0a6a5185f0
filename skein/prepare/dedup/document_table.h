// What deduplication keeps of every document while it reads the others: hashes and size, on disk.
//
// Disk     40 bytes a document, in a temporary file without a name beside the output
// Memory   1 MiB
// Errors   Error{kIo | kNoSpace} naming the file
// Threads  one at a time
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "skein/base/hash.h"
#include "skein/data/corpus_writer.h"

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
  explicit DocumentTable(const fs::path& out);
  void append(const DocumentEntry& entry);
  void finish() { spool_.flush(); }

  int64_t size() const { return spool_.num_bytes() / static_cast<int64_t>(sizeof(DocumentEntry)); }
  DocumentEntry at(uint64_t document) const;
  // In order.
  void for_each(const std::function<void(uint64_t document, const DocumentEntry&)>& visit) const;

 private:
  Spool spool_;
};

}  // namespace skein
