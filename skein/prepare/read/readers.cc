#include "skein/prepare/read/readers.h"

#include <arrow/memory_pool.h>
#include <arrow/util/utf8.h>
#include <sys/mman.h>

#include <fstream>

#include "skein/data/text_column.h"

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

void check_is_text(std::string_view text, const std::string& where) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    fail(ErrorCode::kInvalid,
         "{}: UTF-16: expected UTF-8 text; `iconv -f UTF-16 -t UTF-8` makes it", where);
  }
  check_utf8(text, where);
  // UTF-8 may contain null bytes, but text does not: this is an archive of texts or a disk image.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(ErrorCode::kInvalid, "{}: binary data (a null byte at byte {}): expected UTF-8 text",
         where, nul);
  }
}

// The whole text of a compressed file.
std::string unpacked_text(const fs::path& path, int64_t max_bytes) {
  constexpr size_t kReadAtOnce = size_t{1} << 20;
  const auto source = open_bytes(path);
  std::string text;
  while (true) {
    const size_t size = text.size();
    text.resize(size + kReadAtOnce);
    const size_t count = source->read({text.data() + size, kReadAtOnce});
    text.resize(size + count);
    if (count == 0) return text;
    if (static_cast<int64_t>(text.size()) > max_bytes) {
      fail(ErrorCode::kUnsupported,
           "{}: more than {} bytes of text in one compressed file: split it", path.string(),
           max_bytes);
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
      return read_json_lines(open_bytes(path), path.string(), options, visit);
    case InputFormat::kJson:
      return read_json(path, options, visit);
    case InputFormat::kCsv:
    case InputFormat::kTsv:
      return read_csv(open_bytes(path), path.string(), format == InputFormat::kCsv ? ',' : '\t',
                      options, visit);
    case InputFormat::kParquet:
      return read_parquet(path, options.text_column, visit);
    case InputFormat::kArrow:
      return read_arrow(path, options.text_column, visit);
    case InputFormat::kPacked:
      fail_packed(path);
    case InputFormat::kText:
      return read_text(path, options, visit);
  }
}

void check_utf8(std::string_view text, const std::string& where) {
  arrow::util::InitializeUTF8();
  if (arrow::util::ValidateUTF8(text)) return;
  // Finds the bad byte, the end of the longest valid prefix, by bisection over the beginnings of
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

void read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  std::error_code ignored;
  if (name_inside(path) != path.filename().string()) {
    const std::string text = unpacked_text(path, options.max_document_bytes);
    check_is_text(text, path.string());
    return visit(text, 1);
  }
  if (fs::file_size(path, ignored) <= static_cast<uintmax_t>(kReadBytes)) {
    const std::string text = read_file(path, 2 * kReadBytes);
    check_is_text(text, path.string());
    return visit(text, 1);
  }
  const MappedFile file(path);
  check_is_text(file.text(), path.string());
  visit(file.text(), 1);
}

void read_arrow(const fs::path& path, const std::string& column, const DocumentVisitor& visit) {
  const MappedFile file(path);
  int64_t row = 0, resident_bytes = 0;
  for_each_text_column(file.bytes(), path, column, arrow::default_memory_pool(),
                       [&](const TextColumn& texts) {
                         for (int64_t i = 0; i < texts.num_documents(); ++i) {
                           const std::string_view text = texts.document(i);
                           check_utf8(text, fmt::format("{}:{}", path.string(), ++row));
                           visit(text, row);
                           resident_bytes += static_cast<int64_t>(text.size() + sizeof(int64_t));
                           if (resident_bytes > kResidentBytes) {
                             release_pages(file.bytes());
                             resident_bytes = 0;
                           }
                         }
                       });
}

}  // namespace skein
