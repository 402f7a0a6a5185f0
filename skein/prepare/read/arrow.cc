#include <arrow/type.h>
#include <sys/mman.h>

#include <algorithm>

#include "skein/base/files/lost_pages.h"
#include "skein/data/corpus/loss_spans.h"
#include "skein/data/corpus/text_column.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/arrow_input.h"
#include "skein/prepare/read/chat_table.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

// Pages of a mapped file are released when this many bytes are resident.
constexpr int64_t kResidentBytes = int64_t{64} << 20;

void release_pages(std::span<const std::byte> mapped) {
  ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

// A table without texts may be one of conversations.
void add_chat_advice(const Error& error, std::span<const std::byte> bytes) {
  const std::string advice = advice_of_chat(bytes);
  if (advice.empty()) return;
  throw Error(error.code(), error.what() + advice);
}

}  // namespace

void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit,
                std::span<const std::byte> spooled) {
  const bool is_file = spooled.data() == nullptr;
  const MappedFile file =
      !is_file ? MappedFile()
      : is_object_url(path)
          ? copy_object(parse_object_url(path.native()), options.scratch, options.bytes.on_read)
          : MappedFile(path);
  const std::span<const std::byte> bytes = is_file ? file.bytes() : spooled;
  const MappedRegion region(bytes, path);
  const auto num_bytes = static_cast<int64_t>(bytes.size());
  refuse_other_table(
      {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kForeignHeadBytes)},
      path, InputFormat::kArrow);
  if (has_loss_spans(bytes)) {
    fail(
        ErrorCode::kUnsupported,
        "{}: says which bytes are completions (column `{}`), which would be lost here: clean, "
        "join and deduplicate the conversations, as JSON, and render them last (`skein data ingest "
        "--chat-template`)",
        path.string(), kLossSpans);
  }
  DecodingMemory memory(num_bytes, options.bytes.max_expansion);
  int64_t row = 0, resident_bytes = 0;
  GivenRows given(path.string(), options.bytes);
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  const auto read_column = [&](const TextColumn& texts) {
    for (int64_t i = 0; i < texts.num_documents(); ++i) {
      const HeldText held = texts.document(i);
      std::string_view text = held;
      resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
      ++row;
      // Rows may also share their text, by offsets that go back.
      given.add(static_cast<int64_t>(text.size()), num_bytes);
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
      if (resident_bytes > kResidentBytes) {
        release_pages(bytes);
        resident_bytes = 0;
      }
    }
  };
  try {
    if (options.chat != nullptr) {
      read_chat_arrow(bytes, path, &memory, options, visit);
      return require_no_lost_pages();
    }
    const std::vector<std::string> columns = text_columns(options);
    const auto schema = for_each_text_column(ArrowBytes(bytes), path, columns, &memory, read_column,
                                             TextTypes::kAny);
    tell_text_column(
        first_of(columns,
                 [&](const std::string& name) { return schema->GetFieldIndex(name) >= 0; }),
        options);
  } catch (const Error& error) {
    require_no_lost_pages();  // zeros are why
    memory.check(path.string());
    if (options.chat == nullptr && error.code() == ErrorCode::kInvalid)
      add_chat_advice(error, bytes);
    throw;
  }
  require_no_lost_pages();
}

}  // namespace skein
