#include "skein/prepare/read/readers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "skein/base/lfs_pointer.h"
#include "skein/base/lost_pages.h"
#include "skein/objects/object_store.h"

namespace skein {
namespace {

// Files up to this size are read, larger ones are mapped.
constexpr int64_t kReadBytes = int64_t{64} << 20;

struct Ending {
  const char* text;
  InputFormat format;
};

constexpr Ending kEndings[] = {
    {".jsonl", InputFormat::kJsonLines},
    {".ndjson", InputFormat::kJsonLines},
    {".jsonlines", InputFormat::kJsonLines},
    {".jl", InputFormat::kJsonLines},
    {".json", InputFormat::kJson},
    {".csv", InputFormat::kCsv},
    {".tsv", InputFormat::kTsv},
    {".parquet", InputFormat::kParquet},
    {".pq", InputFormat::kParquet},
    {".arrow", InputFormat::kArrow},
    {".arrows", InputFormat::kArrow},
    {".feather", InputFormat::kArrow},
    {".ipc", InputFormat::kArrow},
    {".wet", InputFormat::kWarc},
    {".warc", InputFormat::kWarc},
    {".txt", InputFormat::kText},
    {".text", InputFormat::kText},
    {".md", InputFormat::kText},
    {".rst", InputFormat::kText},
    {".tex", InputFormat::kText},
    {".htm", InputFormat::kText},
    {".html", InputFormat::kText},
    {".xml", InputFormat::kText},
};

constexpr const char* kPackedEndings[] = {".zip", ".tar", ".tgz", ".bz2", ".xz", ".lzma",
                                          ".lz4", ".7z",  ".rar", ".br",  ".z"};

// The lower-case name without the ending of a compression, which says nothing about the content.
std::string name_inside(const fs::path& path) {
  return lower_case(is_named_compressed(path) ? path.stem().string() : path.filename().string());
}

InputFormat format_of_bytes(std::string_view head) {
  if (head.starts_with("PAR1")) return InputFormat::kParquet;
  // An Arrow stream does not begin with UTF-8.
  if (head.starts_with("ARROW1") || head.starts_with("\xff\xff\xff\xff")) {
    return InputFormat::kArrow;
  }
  if (head.starts_with("WARC/1.") || head.starts_with("WARC/0.")) return InputFormat::kWarc;
  return InputFormat::kUnknown;
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

}  // namespace

bool accept_text(std::string_view& text, std::string& repaired, const std::string& where,
                 const ReadOptions& options) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    const bool always = options.utf8.invalid == InvalidUtf8::kFailAlways;
    fail(always ? ErrorCode::kCorrupt : ErrorCode::kInvalid,
         "{}: UTF-16: expected UTF-8 text; `iconv -f UTF-16 -t UTF-8` makes it", where);
  }
  if (!accept_utf8(text, repaired, options.utf8, [&] { return where; })) return false;
  // UTF-8 may contain null bytes, but text does not: this is an archive of texts or a disk image.
  if (text.find('\0') != std::string_view::npos) {
    refuse_binary(text, where, ErrorCode::kInvalid);
  }
  return true;
}

namespace {

void visit_text(std::string_view text, const fs::path& path, const ReadOptions& options,
                const DocumentVisitor& visit) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // of the encoding, not of the text
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::string repaired;
  if (accept_text(text, repaired, path.string(), options)) visit(text, 1);
}

// The whole text of a compressed file, of an object or of a pipe.
std::string unpacked_text(std::unique_ptr<ByteSource> source, const fs::path& path,
                          const ReadOptions& options) {
  constexpr size_t kReadAtOnce = size_t{1} << 20;
  std::string text;
  while (true) {
    const size_t size = text.size();
    text.resize(size + kReadAtOnce);
    const size_t count = source->read({text.data() + size, kReadAtOnce});
    text.resize(size + count);
    if (count == 0) return text;
    if (static_cast<int64_t>(text.size()) > options.max_document_bytes) {
      fail(ErrorCode::kUnsupported,
           "{}: more than {} bytes of text in one compressed file, object or pipe, which is one "
           "document: expected a smaller one; --document-separator TEXT says what stands between "
           "several, and --format lines takes each line for one",
           path.string(), options.max_document_bytes);
    }
  }
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
  return InputFormat::kUnknown;
}

InputFormat format_named(const std::string& name) {
  constexpr InputFormat kFormats[] = {
      InputFormat::kText, InputFormat::kLines,   InputFormat::kJsonLines, InputFormat::kJson,
      InputFormat::kCsv,  InputFormat::kParquet, InputFormat::kArrow,     InputFormat::kWarc};
  const auto* found = std::find(std::begin(kFormatNames), std::end(kFormatNames), name);
  if (found == std::end(kFormatNames)) {
    fail(ErrorCode::kUsage, "--format {}: expected one of: {}", name,
         fmt::join(kFormatNames, ", "));
  }
  return kFormats[found - std::begin(kFormatNames)];
}

std::string name_of(const std::optional<InputFormat>& format) {
  for (const char* name : kFormatNames) {
    if (format && format_named(name) == *format) return name;
  }
  return "";
}

namespace {

bool is_plain_file(const fs::path& path) {
  std::error_code ignored;
  return !is_object_url(path) && fs::is_regular_file(path, ignored);
}

struct Opened {
  std::unique_ptr<PeekedSource> source;
  InputFormat format;
  std::string compression;  // that the name does not tell
};

// Of objects.
bool begins_with_array(PeekedSource& source) {
  const std::string_view head = source.peek(4096);
  const size_t first = head.find_first_not_of(" \t\r\n", head.starts_with("\xef\xbb\xbf") ? 3 : 0);
  if (first == head.npos || head[first] != '[') return false;
  const size_t next = head.find_first_not_of(" \t\r\n", first + 1);
  return next != head.npos && head[next] == '{';
}

// What a file is that does not say so by its name, with what it was taken for.
std::string look(Opened& file, const fs::path& path, const ReadOptions& options) {
  file.format = format_of_bytes(file.source->peek(8));
  if (file.format != InputFormat::kUnknown) {
    const char* found = file.format == InputFormat::kArrow  ? "Arrow"
                        : file.format == InputFormat::kWarc ? "WARC"
                                                            : "Parquet";
    if (file.format == InputFormat::kWarc) return found;
    if (!file.compression.empty() || is_named_compressed(path)) {
      fail(ErrorCode::kInvalid,
           "{}: {}, compressed as a whole: expected the file itself; decompress it first",
           path.string(), found);
    }
    return found;
  }
  const std::string_view head = file.source->peek(4096);
  const size_t first = head.find_first_not_of(" \t\r\n");
  const bool may_be =
      first != std::string_view::npos && (head[first] == '{' || head.starts_with("\xef\xbb\xbf{"));
  const bool are_lines = may_be && looks_like_json_lines(*file.source, options);
  file.format = are_lines ? InputFormat::kJsonLines : InputFormat::kText;
  return are_lines ? "JSON lines" : "";
}

// Tells the format, and what was found by content.
void tell(const Opened& file, std::string taken_for, const ReadOptions& options) {
  if (!options.on_format) return;
  if (!file.compression.empty()) {
    taken_for = file.compression + (taken_for.empty() ? "" : " of " + taken_for);
  }
  options.on_format(file.format, taken_for);
}

}  // namespace

Json reading_key(const ReadOptions& options, bool skips_invalid_lines) {
  Json key = {{"max_document_bytes", options.max_document_bytes},
              {"text_column", options.text_column},
              {"as_text", options.as_text},
              {"named_format", name_of(options.format)},
              {"invalid_utf8", static_cast<int>(options.utf8.invalid)},
              {"skip_invalid_lines", skips_invalid_lines}};
  // Left out where there is none: what was read before there was such an option is as it was.
  if (!options.document_separator.empty()) {
    key["document_separator"] = options.document_separator;
  }
  return key;
}

std::vector<std::string> text_columns(const ReadOptions& options) {
  if (!options.text_column.empty()) return {options.text_column};
  return {std::begin(kTextColumns), std::end(kTextColumns)};
}

void tell_text_column(const std::string& column, const ReadOptions& options) {
  const bool is_found = options.text_column.empty() && column != kTextColumns[0];
  if (is_found && options.on_text_column) options.on_text_column(column);
}

void read_documents(const fs::path& path, const ReadOptions& options,
                    const DocumentVisitor& visit) {
  if (!is_object_url(path) && is_lfs_pointer_file(path)) {
    fail(ErrorCode::kInvalid, "{}: {}", path.string(), kLfsAdvice);
  }
  Opened file;
  file.format = input_format(path, options.as_text);
  if (options.format && file.format != InputFormat::kPacked) {
    const bool is_tabbed = *options.format == InputFormat::kCsv && file.format == InputFormat::kTsv;
    if (!is_tabbed) file.format = *options.format;
  }
  const std::string name = path.string();
  switch (file.format) {
    case InputFormat::kPacked:
      tell(file, "", options);
      fail_packed(path);
    case InputFormat::kParquet:
      tell(file, "", options);
      return read_parquet(path, options, visit);
    case InputFormat::kArrow:
      tell(file, "", options);
      return read_arrow(path, options, visit);
    case InputFormat::kText:
      if (!is_plain_file(path) || is_named_compressed(path)) break;
      if (!options.document_separator.empty()) break;
      tell(file, "", options);
      return read_text(path, options, visit);
    default:
      break;
  }
  file.source = open_bytes(path, options.bytes, &file.compression);
  const bool is_unknown = file.format == InputFormat::kUnknown;
  tell(file, is_unknown ? look(file, path, options) : "", options);
  switch (file.format) {
    case InputFormat::kParquet:
      return read_parquet(path, options, visit);
    case InputFormat::kArrow:
      return read_arrow(path, options, visit);
    case InputFormat::kJsonLines:  // or one array, whatever the name says
      if (!options.format && begins_with_array(*file.source)) {
        return read_json_values(std::move(file.source), name, options, visit);
      }
      return read_json_lines(std::move(file.source), name, options, visit);
    case InputFormat::kJson:
      return read_json(std::move(file.source), name, options, visit);
    case InputFormat::kCsv:
    case InputFormat::kTsv:
      return read_csv(std::move(file.source), name, file.format == InputFormat::kCsv ? ',' : '\t',
                      options, visit);
    case InputFormat::kWarc:
      return read_warc(std::move(file.source), name, options, visit);
    case InputFormat::kLines:
      return read_separated(std::move(file.source), path, "\n", options, visit);
    default:
      break;
  }
  if (!options.document_separator.empty()) {
    return read_separated(std::move(file.source), path, options.document_separator, options, visit);
  }
  // A large text is mapped.
  if (is_plain_file(path) && file.compression.empty() && !is_named_compressed(path)) {
    return read_text(path, options, visit);
  }
  visit_text(unpacked_text(std::move(file.source), path, options), path, options, visit);
}

void read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) <= static_cast<uintmax_t>(kReadBytes)) {
    return visit_text(read_file(path, 2 * kReadBytes), path, options, visit);
  }
  const MappedFile file(path);
  const MappedRegion region(file.bytes(), path);
  visit_text(file.text(), path, options, visit);
  require_no_lost_pages();
}

}  // namespace skein
