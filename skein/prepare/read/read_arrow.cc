#include <arrow/type.h>
#include <sys/mman.h>

#include "skein/base/lost_pages.h"
#include "skein/data/text_column.h"
#include "skein/objects/object_store.h"
#include "skein/prepare/read/arrow_input.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

// Pages of a mapped file are released when this many bytes are resident.
constexpr int64_t kResidentBytes = int64_t{64} << 20;

void release_pages(std::span<const std::byte> mapped) {
  ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

}  // namespace

void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  const MappedFile file = is_object_url(path) ? copy_object(parse_object_url(path.native()),
                                                            options.scratch, options.bytes.on_read)
                                              : MappedFile(path);
  const MappedRegion region(file.bytes(), path);
  const auto num_bytes = static_cast<int64_t>(file.bytes().size());
  DecodingMemory memory(num_bytes, options.bytes.max_expansion);
  int64_t row = 0, resident_bytes = 0, num_given = 0;
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  const auto read_column = [&](const TextColumn& texts) {
    for (int64_t i = 0; i < texts.num_documents(); ++i) {
      const HeldText held = texts.document(i);
      std::string_view text = held;
      resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
      ++row;
      // Rows may also share their text, by offsets that go back.
      num_given += static_cast<int64_t>(text.size());
      check_expansion(path.string(), num_bytes, num_given, options.bytes.max_expansion);
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
      if (resident_bytes > kResidentBytes) {
        release_pages(file.bytes());
        resident_bytes = 0;
      }
    }
  };
  try {
    const std::vector<std::string> columns = text_columns(options);
    const auto schema = for_each_text_column(ArrowBytes(file.bytes()), path, columns, &memory,
                                             read_column, TextTypes::kAny);
    tell_text_column(
        first_of(columns,
                 [&](const std::string& name) { return schema->GetFieldIndex(name) >= 0; }),
        options);
  } catch (const Error&) {
    require_no_lost_pages();  // zeros are why
    memory.check(path.string());
    throw;
  }
  require_no_lost_pages();
}

}  // namespace skein
