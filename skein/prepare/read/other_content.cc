// Files whose first bytes say something else than their names.
#include <fmt/format.h>

#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/shell_words.h"
#include "skein/prepare/read/html.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

bool begins_object(std::string_view head) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = head.find_first_not_of(kSpace, head.starts_with("\xef\xbb\xbf") ? 3 : 0);
  if (first == head.npos || head[first] != '{') return false;
  const size_t next = head.find_first_not_of(kSpace, first + 1);
  return next != head.npos && head[next] == '"';
}

}  // namespace

void refuse_other_text(std::string_view head, const fs::path& path, const ReadOptions& options) {
  if (takes_as_it_stands(options)) return;
  refuse_foreign(head, path);
  const InputFormat found = format_of_bytes(head);
  if (found == InputFormat::kUnknown) return;
  const bool has_option = found != InputFormat::kTar;
  throw ForeignFile(fmt::format(
      "{}: {} by its first bytes, and named as a text: {}", path.string(), title_of(found),
      has_option ? fmt::format("--format {} reads it", name_of(found))
                 : fmt::format("`mv {} {}` gives it the right name", shell_word(path.string()),
                               shell_word(path.string() + ".tar"))));
}

void refuse_page(std::string_view head, const fs::path& path, InputFormat format) {
  if (!is_html(head)) return;
  throw ForeignFile(fmt::format(
      "{}: a page of HTML, not {}: is it what a server answered in place of the file? Fetch it "
      "again, or say --format text",
      path.string(), title_of(format)));
}

void refuse_other_table(std::string_view head, const fs::path& path, InputFormat format) {
  const std::string name = path.string();
  const auto refuse = [&](const std::string& what) {
    throw ForeignFile(fmt::format("{}: {}", name, what));
  };
  if (is_lfs_pointer(head)) refuse(kLfsAdvice);
  if (head.empty()) {
    fail(ErrorCode::kCorrupt, "{}: is empty: expected {}; fetch it again", name, title_of(format));
  }
  const InputFormat found = format_of_bytes(head);
  if (found == format) return;
  if (found != InputFormat::kUnknown && found != InputFormat::kTar) {
    refuse(fmt::format("{} by its first bytes, not {}: --format {} reads it", title_of(found),
                       title_of(format), name_of(found)));
  }
  if (const Compression* compression = compression_of(head.substr(0, kCompressionHeadBytes))) {
    refuse(fmt::format(
        "{} data by its first bytes, not {}: `{}` decompresses it", compression->name,
        title_of(format),
        command_on(fmt::format("{} < {{}} > NEW", compression->command).c_str(), path)));
  }
  refuse_page(head, path, format);
  if (begins_object(head)) {
    refuse(
        fmt::format("begins as JSON does, not as {}: --format jsonl reads it", title_of(format)));
  }
  refuse_foreign(head, path);
}

}  // namespace skein
