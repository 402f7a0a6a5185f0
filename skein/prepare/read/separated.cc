// Texts of several documents with a separator between them.
#include <fmt/format.h>

#include "skein/base/files/lost_pages.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;

// Line breaks behind a separator and before one are not of a document. The spaces of a line are.
std::string_view without_line_breaks(std::string_view text) {
  while (text.starts_with('\n') || text.starts_with("\r\n")) {
    text.remove_prefix(text.starts_with('\n') ? 1 : 2);
  }
  while (text.ends_with('\n')) {
    text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  }
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

void read_separated(std::unique_ptr<ByteSource> source, const fs::path& path,
                    const std::string& separator, const ReadOptions& options,
                    const DocumentVisitor& visit) {
  const std::string name = path.string();
  std::string buffer, repaired;
  int64_t record = 0;
  bool ends = false;
  const auto give = [&](std::string_view text) {
    ++record;
    if (record == 1 && text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    text = without_line_breaks(text);
    if (text.empty()) return;
    if (accept_text(text, repaired, fmt::format("{}, document {}", name, record), options)) {
      visit(text, record);
    }
  };
  size_t searched = 0;  // no separator begins before
  while (!ends) {
    ends = !append_from(*source, buffer, kReadAtOnce);
    size_t begin = 0;
    for (size_t at; (at = buffer.find(separator, searched)) != buffer.npos;) {
      give(std::string_view(buffer).substr(begin, at - begin));
      searched = begin = at + separator.size();
    }
    buffer.erase(0, begin);
    searched = buffer.size() < separator.size() ? 0 : buffer.size() - separator.size() + 1;
    if (static_cast<int64_t>(buffer.size()) > options.max_document_bytes) {
      fail(ErrorCode::kUnsupported, "{}, document {}: more than {} bytes without a separator", name,
           record + 1, options.max_document_bytes);
    }
  }
  const bool is_found = record > 0;
  if (!buffer.empty()) give(buffer);
  if (!is_found && options.on_no_separator && options.format != InputFormat::kLines) {
    options.on_no_separator();
  }
  require_no_lost_pages();
}

}  // namespace skein
