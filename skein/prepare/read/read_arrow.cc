#include <arrow/memory_pool.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "skein/data/text_column.h"
#include "skein/objects/object_url.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

// Pages of a mapped file are released when this many bytes are resident.
constexpr int64_t kResidentBytes = int64_t{64} << 20;

// The whole object, in a file of `scratch` that has no name and goes with the map.
MappedFile copy_object(const fs::path& url, const ReadOptions& options) {
  const fs::path folder = options.scratch.empty() ? fs::temp_directory_path() : options.scratch;
  std::string name = folder / "object_XXXXXX";
  const FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {} for {}: {}", name, url.string(), errno_text(errno));
  }
  ::unlink(name.c_str());
  const auto source = open_bytes(url, options.bytes);
  std::string buffer(size_t{1} << 20, '\0');
  while (const size_t count = source->read({buffer.data(), buffer.size()})) {
    write_all(file.get(), std::as_bytes(std::span(buffer.data(), count)), name);
  }
  return MappedFile(file, url);
}

void release_pages(std::span<const std::byte> mapped) {
  ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

}  // namespace

void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  const MappedFile file = is_object_url(path) ? copy_object(path, options) : MappedFile(path);
  int64_t row = 0, resident_bytes = 0;
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  const auto read_column = [&](const TextColumn& texts) {
    for (int64_t i = 0; i < texts.num_documents(); ++i) {
      std::string_view text = texts.document(i);
      resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
      ++row;
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
      if (resident_bytes > kResidentBytes) {
        release_pages(file.bytes());
        resident_bytes = 0;
      }
    }
  };
  for_each_text_column(file.bytes(), path, options.text_column, arrow::default_memory_pool(),
                       read_column);
}

}  // namespace skein
