// What a person may ask for of reading, and what it means.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "skein/chat/chat_renderer.h"
#include "skein/prepare/read/readers.h"

namespace skein {

bool takes_as_it_stands(const ReadOptions& options) {
  return options.as_text || options.format == InputFormat::kText;
}

void check_reading(const ReadOptions& options) {
  const std::string format = name_of(options.format);
  const bool is_text = !options.format || options.format == InputFormat::kText;
  if (!options.document_separator.empty() && !is_text) {
    fail(ErrorCode::kUsage,
         "--document-separator with --format {}: it stands between the documents of a text: "
         "expected --format text, or none",
         format);
  }
  if (options.as_text && !is_text) {
    fail(ErrorCode::kUsage, "--as-text with --format {}: expected one of the two", format);
  }
}

void check_separator(const ReadOptions& options, const std::vector<InputFile>& files) {
  if (options.document_separator.empty() || takes_as_it_stands(options) || files.empty()) return;
  const auto may_be_text = [](const InputFile& file) {
    const InputFormat format = input_format(file.path);
    return format == InputFormat::kText || format == InputFormat::kTar ||
           format == InputFormat::kUnknown;
  };
  if (std::any_of(files.begin(), files.end(), may_be_text)) return;
  fail(ErrorCode::kUsage,
       "--document-separator: stands between the documents of a text, and no input is one by its "
       "name ({} is {}): expected texts, or no separator; --format text takes all for texts",
       files.front().path.string(), title_of(input_format(files.front().path)));
}

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
  if (options.chat != nullptr) key["chat"] = options.chat->key();
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

}  // namespace skein
