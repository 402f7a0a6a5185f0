#include "skein/prepare/read/readers.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <sys/mman.h>

#include <fstream>

#include "skein/data/text_column.h"
#include "skein/objects/object_store.h"

namespace skein {
namespace {

// Files up to this size are read, larger ones are mapped.
constexpr int64_t kReadBytes = int64_t{64} << 20;
// Pages of a mapped file are released when this many bytes are resident.
constexpr int64_t kResidentBytes = int64_t{64} << 20;

struct Ending {
  const char* text;
  InputFormat format;
};

constexpr Ending kEndings[] = {
    {".jsonl", InputFormat::kJsonLines}, {".ndjson", InputFormat::kJsonLines},
    {".json", InputFormat::kJson},       {".csv", InputFormat::kCsv},
    {".tsv", InputFormat::kTsv},         {".parquet", InputFormat::kParquet},
    {".arrow", InputFormat::kArrow},     {".feather", InputFormat::kArrow},
};

constexpr const char* kPackedEndings[] = {".zip", ".tar", ".tgz", ".bz2", ".xz", ".lzma",
                                          ".lz4", ".7z",  ".rar", ".br",  ".z"};

// The lower-case name without a final .gz or .zst, which says nothing about the content.
std::string name_inside(const fs::path& path) {
  const std::string extension = lower_case(path.extension().string());
  const bool is_compressed = extension == ".gz" || extension == ".zst";
  return lower_case(is_compressed ? path.stem().string() : path.filename().string());
}

// The first bytes of a file; empty if it cannot be opened (reading it will report why).
std::string head_of(const fs::path& path) {
  if (is_object_url(path)) {
    const auto file = open_object(parse_object_url(path.native()));
    const auto head = file->ReadAt(0, 8);
    return head.ok() ? (*head)->ToString() : "";
  }
  std::ifstream file(path, std::ios::binary);
  std::string head(8, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return head;
}

InputFormat format_of_bytes(std::string_view head) {
  if (head.starts_with("PAR1")) return InputFormat::kParquet;
  // An Arrow stream does not begin with UTF-8.
  if (head.starts_with("ARROW1") || head.starts_with("\xff\xff\xff\xff")) {
    return InputFormat::kArrow;
  }
  return InputFormat::kText;
}

[[noreturn]] void fail_packed(const fs::path& path) {
  const InputFormat inside = input_format(fs::path(name_inside(path)));
  if (inside == InputFormat::kParquet || inside == InputFormat::kArrow) {
    fail(ErrorCode::kInvalid,
         "{}: compressed as a whole: expected the file itself; decompress it first", path.string());
  }
  fail(ErrorCode::kInvalid,
       "{}: an archive, or compressed by a program that is not read here: expected plain files, "
       ".gz or .zst; unpack it, and name what was in it",
       path.string());
}

// False if the text is to be left out.
bool accept_text(std::string_view& text, std::string& repaired, const std::string& where,
                 const ReadOptions& options) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    fail(ErrorCode::kInvalid,
         "{}: UTF-16: expected UTF-8 text; `iconv -f UTF-16 -t UTF-8` makes it", where);
  }
  if (!accept_utf8(text, repaired, options.utf8, [&] { return where; })) return false;
  // UTF-8 may contain null bytes, but text does not: this is an archive of texts or a disk image.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::kInvalid, "{}: binary data (a null byte at byte {}): expected UTF-8 text",
         where, nul);
  }
  return true;
}

void visit_text(std::string_view text, const fs::path& path, const ReadOptions& options,
                const DocumentVisitor& visit) {
  std::string repaired;
  if (accept_text(text, repaired, path.string(), options)) visit(text, 1);
}

// The whole text of a compressed file, or of an object.
std::string unpacked_text(const fs::path& path, const ReadOptions& options) {
  constexpr size_t kReadAtOnce = size_t{1} << 20;
  const auto source = open_bytes(path, options.bytes);
  std::string text;
  while (true) {
    const size_t size = text.size();
    text.resize(size + kReadAtOnce);
    const size_t count = source->read({text.data() + size, kReadAtOnce});
    text.resize(size + count);
    if (count == 0) return text;
    if (static_cast<int64_t>(text.size()) > options.max_document_bytes) {
      fail(ErrorCode::kUnsupported,
           "{}: more than {} bytes of text in one compressed file or object: split it",
           path.string(), options.max_document_bytes);
    }
  }
}

void release_pages(std::span<const std::byte> mapped) {
  ::madvise(const_cast<std::byte*>(mapped.data()), mapped.size(), MADV_DONTNEED);
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

InputFormat input_format(const fs::path& path, bool as_text) {
  const std::string name = lower_case(path.filename().string()), inside = name_inside(path);
  for (const char* ending : kPackedEndings) {
    if (inside.ends_with(ending)) return InputFormat::kPacked;
  }
  for (const auto& [ending, format] : kEndings) {
    if (!inside.ends_with(ending)) continue;
    const bool is_binary = format == InputFormat::kParquet || format == InputFormat::kArrow;
    if (is_binary && inside != name) return InputFormat::kPacked;
    return as_text && !is_binary ? InputFormat::kText : format;
  }
  return inside == name && !path.has_extension() ? format_of_bytes(head_of(path))
                                                 : InputFormat::kText;
}

void read_documents(const fs::path& path, const ReadOptions& options,
                    const DocumentVisitor& visit) {
  const InputFormat format = input_format(path, options.as_text);
  switch (format) {
    case InputFormat::kJsonLines:
      return read_json_lines(open_bytes(path, options.bytes), path.string(), options, visit);
    case InputFormat::kJson:
      return read_json(path, options, visit);
    case InputFormat::kCsv:
    case InputFormat::kTsv:
      return read_csv(open_bytes(path, options.bytes), path.string(),
                      format == InputFormat::kCsv ? ',' : '\t', options, visit);
    case InputFormat::kParquet:
      return read_parquet(path, options, visit);
    case InputFormat::kArrow:
      return read_arrow(path, options, visit);
    case InputFormat::kPacked:
      fail_packed(path);
    case InputFormat::kText:
      return read_text(path, options, visit);
  }
}

void read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  std::error_code ignored;
  if (is_object_url(path) || name_inside(path) != path.filename().string()) {
    return visit_text(unpacked_text(path, options), path, options, visit);
  }
  if (fs::file_size(path, ignored) <= static_cast<uintmax_t>(kReadBytes)) {
    return visit_text(read_file(path, 2 * kReadBytes), path, options, visit);
  }
  const MappedFile file(path);
  visit_text(file.text(), path, options, visit);
}

void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  const MappedFile file = is_object_url(path) ? copy_object(parse_object_url(path.native()),
                                                            options.scratch, options.bytes.on_read)
                                              : MappedFile(path);
  int64_t row = 0, resident_bytes = 0;
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  const auto read_column = [&](const TextColumn& texts) {
    for (int64_t i = 0; i < texts.num_documents(); ++i) {
      const HeldText held = texts.document(i);
      std::string_view text = held;
      resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
      ++row;
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
      if (resident_bytes > kResidentBytes) {
        release_pages(file.bytes());
        resident_bytes = 0;
      }
    }
  };
  for_each_text_column(ArrowBytes(file.bytes()), path, options.text_column,
                       arrow::default_memory_pool(), read_column);
}

}  // namespace skein
