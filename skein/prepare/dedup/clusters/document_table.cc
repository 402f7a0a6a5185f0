#include "skein/prepare/dedup/clusters/document_table.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "skein/base/error.h"
#include "skein/prepare/dedup/clusters/partitions.h"

namespace skein {

static_assert(sizeof(DocumentEntry) == 40);

DocumentTable::DocumentTable(const fs::path& out, uint64_t num_documents)
    : spool_(unique_partial(out)), num_documents_(num_documents) {}

void DocumentTable::write(uint64_t first_document, std::span<const DocumentEntry> entries) {
  auto bytes = std::as_bytes(entries);
  auto offset = static_cast<off_t>(first_document * sizeof(DocumentEntry));
  while (!bytes.empty()) {
    const ssize_t count = retry_interrupted(
        [&] { return ::pwrite(spool_.fd(), bytes.data(), bytes.size(), offset); });
    if (count < 0) {
      fail(errno_code(errno), "cannot write {} (a temporary file): {}", spool_.path().string(),
           errno_text(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

DocumentEntry DocumentTable::at(uint64_t document) const {
  DocumentEntry entry;
  read_spool(spool_, static_cast<int64_t>(document * sizeof(entry)),
             std::as_writable_bytes(std::span(&entry, 1)));
  return entry;
}

void DocumentTable::for_each(
    uint64_t begin, uint64_t end,
    const std::function<void(uint64_t, const DocumentEntry&)>& visit) const {
  std::vector<DocumentEntry> entries((size_t{1} << 20) / sizeof(DocumentEntry));
  for (uint64_t document = begin; document < end;) {
    const auto count = std::min<uint64_t>(entries.size(), end - document);
    const std::span<DocumentEntry> read(entries.data(), count);
    read_spool(spool_, static_cast<int64_t>(document * sizeof(DocumentEntry)),
               std::as_writable_bytes(read));
    for (const DocumentEntry& entry : read) visit(document++, entry);
  }
}

}  // namespace skein
