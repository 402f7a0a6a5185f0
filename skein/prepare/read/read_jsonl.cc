// Files of JSON objects, one a line.
#include <fmt/format.h>

#include "skein/prepare/read/json_document.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

void read_json_lines(std::unique_ptr<ByteSource> source, const std::string& name,
                     const ReadOptions& options, const DocumentVisitor& visit) {
  LineReader lines(std::move(source), name, options.max_document_bytes, options.on_invalid_line);
  JsonDocumentParser parser(text_columns(options),
                            [&](const std::string& key) { tell_text_column(key, options); });
  const auto where = [&] { return fmt::format("{}:{}", name, lines.line_number()); };
  std::string_view line, text;
  std::string repaired;
  while (lines.next(line)) {
    if (is_blank(line)) continue;
    try {
      // The parser checks, where an error is wanted.
      if (options.utf8.invalid != InvalidUtf8::kFail &&
          !accept_utf8(line, repaired, options.utf8, where)) {
        continue;
      }
      text = parser.parse(line, where);
    } catch (const Error& error) {
      pass_over_line(error, options);
      continue;
    }
    visit(text, lines.line_number());
  }
}

}  // namespace skein
