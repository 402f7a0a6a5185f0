#include "skein/prepare/dedup/document_table.h"

#include <algorithm>
#include <vector>

#include "skein/prepare/dedup/partitions.h"

namespace skein {

static_assert(sizeof(DocumentEntry) == 40);

DocumentTable::DocumentTable(const fs::path& out) : spool_(unique_partial(out)) {}

void DocumentTable::append(const DocumentEntry& entry) {
  spool_.append({reinterpret_cast<const char*>(&entry), sizeof(entry)});
}

DocumentEntry DocumentTable::at(uint64_t document) const {
  DocumentEntry entry;
  read_spool(spool_, static_cast<int64_t>(document * sizeof(entry)),
             std::as_writable_bytes(std::span(&entry, 1)));
  return entry;
}

void DocumentTable::for_each(
    const std::function<void(uint64_t, const DocumentEntry&)>& visit) const {
  std::vector<DocumentEntry> entries((size_t{1} << 20) / sizeof(DocumentEntry));
  const auto num_documents = static_cast<uint64_t>(size());
  for (uint64_t document = 0; document < num_documents;) {
    const auto count = std::min<uint64_t>(entries.size(), num_documents - document);
    const std::span<DocumentEntry> read(entries.data(), count);
    read_spool(spool_, static_cast<int64_t>(document * sizeof(DocumentEntry)),
               std::as_writable_bytes(read));
    for (const DocumentEntry& entry : read) visit(document++, entry);
  }
}

}  // namespace skein
