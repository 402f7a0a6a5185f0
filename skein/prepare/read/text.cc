// Files that are one document.
#include <fmt/format.h>

#include <algorithm>

#include "skein/base/files/lost_pages.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

// Files up to this size are read, larger ones are mapped.
constexpr int64_t kReadBytes = int64_t{64} << 20;
constexpr size_t kReadAtOnce = size_t{16} << 10, kMostAtOnce = size_t{1} << 20;

void visit_text(std::string_view text, const fs::path& path, const ReadOptions& options,
                const DocumentVisitor& visit) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // of the encoding, not of the text
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  std::string repaired;
  if (accept_text(text, repaired, path.string(), options)) visit(text, 1);
}

bool visit_plain(std::string_view text, const fs::path& path, const ReadOptions& options,
                 const DocumentVisitor& visit) {
  if (compression_of(text.substr(0, kCompressionHeadBytes)) != nullptr) return false;
  refuse_other_text(text.substr(0, kForeignHeadBytes), path, options);
  visit_text(text, path, options, visit);
  return true;
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

bool read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) <= static_cast<uintmax_t>(kReadBytes)) {
    return visit_plain(read_file(path, 2 * kReadBytes), path, options, visit);
  }
  const MappedFile file(path);
  const MappedRegion region(file.bytes(), path);
  const bool is_plain = visit_plain(file.text(), path, options, visit);
  require_no_lost_pages();
  return is_plain;
}

void read_text(std::unique_ptr<ByteSource> source, const fs::path& path, const ReadOptions& options,
               const DocumentVisitor& visit) {
  std::string text;
  while (append_from(*source, text, std::clamp(text.size(), kReadAtOnce, kMostAtOnce))) {
    if (static_cast<int64_t>(text.size()) <= options.max_document_bytes) continue;
    fail(ErrorCode::kUnsupported,
         "{}: more than {} bytes of text in one compressed file, object, pipe or member of an "
         "archive, which is one document: expected a smaller one; --document-separator TEXT says "
         "what stands between several, and --format lines takes each line for one",
         path.string(), options.max_document_bytes);
  }
  visit_text(text, path, options, visit);
}

}  // namespace skein
