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
  JsonDocuments documents(options, visit, name,
                          [&] { return fmt::format("{}:{}", name, lines.line_number()); });
  for (std::string_view line; lines.next(line);) {
    if (!is_blank(line)) documents.take(line, lines.line_number());
  }
}

}  // namespace skein
