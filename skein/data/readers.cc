#include "skein/data/readers.h"

#include <arrow/memory_pool.h>
#include <arrow/util/utf8.h>
#include <sys/mman.h>

#include "skein/data/readers_ipc.h"

namespace skein {
namespace {

// Files up to this size are read, larger ones mapped.
constexpr int64_t kReadBytes = int64_t{64} << 20;
// How much of a mapped file may be resident before its pages are let go.
constexpr int64_t kResidentBytes = int64_t{64} << 20;

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  for (const char* ending : endings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

void release_pages(std::span<const std::byte> mapped) {
  ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

}  // namespace

InputFormat input_format(const fs::path& path) {
  const std::string name = path.filename().string();
  if (ends_with_any(name, {".jsonl", ".jsonl.gz", ".jsonl.zst"})) return InputFormat::kJsonLines;
  if (ends_with_any(name, {".parquet"})) return InputFormat::kParquet;
  if (ends_with_any(name, {".arrow", ".feather"})) return InputFormat::kArrow;
  return InputFormat::kText;
}

void read_documents(const fs::path& path, const ReadOptions& options,
                    const DocumentVisitor& visit) {
  switch (input_format(path)) {
    case InputFormat::kJsonLines:
      return read_json_lines(open_bytes(path), path.string(), options, visit);
    case InputFormat::kParquet:
      return read_parquet(path, visit);
    case InputFormat::kArrow:
      return read_arrow(path, visit);
    case InputFormat::kText:
      return read_text(path, visit);
  }
}

void check_utf8(std::string_view text, const std::string& where) {
  arrow::util::InitializeUTF8();
  if (arrow::util::ValidateUTF8(text)) return;
  // Which byte? The end of the longest valid beginning, by bisection over the beginnings of
  // characters.
  size_t good = 0, bad = text.size();
  while (true) {
    size_t middle = good + (bad - good) / 2;
    while (middle > good && (static_cast<uint8_t>(text[middle]) & 0xc0) == 0x80) --middle;
    if (middle == good) break;
    (arrow::util::ValidateUTF8(text.substr(0, middle)) ? good : bad) = middle;
  }
  const bool binary = text.find('\0') != std::string_view::npos;
  fail(ErrorCode::kInvalid, "{}: {} near byte {}: expected UTF-8 text", where,
       binary ? "binary data" : "not UTF-8", good);
}

void read_text(const fs::path& path, const DocumentVisitor& visit) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) <= static_cast<uintmax_t>(kReadBytes)) {
    const std::string text = read_file(path, 2 * kReadBytes);
    check_utf8(text, path.string());
    return visit(text);
  }
  const MappedFile file(path);
  check_utf8(file.text(), path.string());
  visit(file.text());
}

void read_arrow(const fs::path& path, const DocumentVisitor& visit) {
  const MappedFile file(path);
  int64_t row = 0, resident_bytes = 0;
  for_each_text_column(file.bytes(), path, arrow::default_memory_pool(),
                       [&](const TextColumn& column) {
                         for (int64_t i = 0; i < column.num_documents(); ++i) {
                           const std::string_view text = column.document(i);
                           check_utf8(text, fmt::format("{}:{}", path.string(), ++row));
                           visit(text);
                           resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
                           if (resident_bytes > kResidentBytes) {
                             release_pages(file.bytes());
                             resident_bytes = 0;
                           }
                         }
                       });
}

}  // namespace skein
