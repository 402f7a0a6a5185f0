#include "skein/prepare/read/readers.h"

#include <fmt/format.h>

#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/shell_words.h"
#include "skein/objects/store.h"
#include "skein/prepare/read/bytes/spooled.h"

namespace skein {
namespace {

// A file of a disk or a store, or a member of an archive, whose bytes come by once.
struct Input {
  const fs::path& path;
  std::unique_ptr<ByteSource> member = nullptr;  // null: `path` is opened
  int depth = 0;                                 // archives that it lies in
};

struct OpenedInput {
  std::unique_ptr<PeekedSource> source;
  InputFormat format = InputFormat::kUnknown;
  std::string compression;  // that the name does not tell
  std::string taken_for;    // by its first bytes; empty: by its name
};

bool is_plain_file(const Input& input) {
  std::error_code ignored;
  return !input.member && !is_object_url(input.path) && fs::is_regular_file(input.path, ignored) &&
         !is_named_compressed(input.path);
}

bool is_table(InputFormat format) {
  return format == InputFormat::kParquet || format == InputFormat::kArrow;
}

[[noreturn]] void refuse_pointer(const fs::path& path) {
  throw ForeignFile(fmt::format("{}: {}", path.string(), kLfsAdvice));
}

// By the name, or because a person says so.
InputFormat named_format(const fs::path& path, const ReadOptions& options) {
  const InputFormat format = input_format(path, options.as_text);
  if (!options.format || format == InputFormat::kPacked || format == InputFormat::kTar) {
    return format;
  }
  const bool is_tabbed = *options.format == InputFormat::kCsv && format == InputFormat::kTsv;
  return is_tabbed ? format : *options.format;
}

// Whether an array of objects begins, as of .json.
bool begins_with_array(PeekedSource& source) {
  const std::string_view head = source.peek(4096);
  const size_t first = head.find_first_not_of(" \t\r\n", head.starts_with("\xef\xbb\xbf") ? 3 : 0);
  if (first == head.npos || head[first] != '[') return false;
  const size_t next = head.find_first_not_of(" \t\r\n", first + 1);
  return next != head.npos && head[next] == '{';
}

bool are_json_lines(PeekedSource& source, const ReadOptions& options) {
  const std::string_view head = source.peek(4096);
  const size_t first = head.find_first_not_of(" \t\r\n");
  const bool may_be =
      first != std::string_view::npos && (head[first] == '{' || head.starts_with("\xef\xbb\xbf{"));
  return may_be && looks_like_json_lines(source, options);
}

// Looks at the first bytes: what a file is that does not say so by its name, and whether one that
// does is something else.
void look(OpenedInput& file, const fs::path& path, const ReadOptions& options) {
  const std::string_view head = file.source->peek(kForeignHeadBytes);
  if (is_lfs_pointer(head)) refuse_pointer(path);
  const bool is_unknown = file.format == InputFormat::kUnknown;
  if (takes_as_it_stands(options) && !is_unknown) return;
  const InputFormat found = format_of_bytes(head);
  const bool is_text = file.format == InputFormat::kText || file.format == InputFormat::kLines;
  if (found != InputFormat::kUnknown && found != file.format) {
    if (is_text) refuse_other_text(head, path, options);
    if (options.format) {
      throw ForeignFile(fmt::format("{}: {} by its first bytes, not {}: expected --format {}",
                                    path.string(), title_of(found), name_of(options.format),
                                    name_of(found)));
    }
    file.format = found;
    file.taken_for = title_of(found);
    return;
  }
  if (found == InputFormat::kUnknown && !takes_as_it_stands(options)) refuse_foreign(head, path);
  if (!is_unknown && !is_text) refuse_page(head, path, file.format);
  if (!is_unknown) return;
  const bool are_lines = are_json_lines(*file.source, options);
  file.format = are_lines ? InputFormat::kJsonLines : InputFormat::kText;
  if (are_lines) file.taken_for = title_of(file.format);
}

// Tells the format, and what was found by content.
void tell(const OpenedInput& file, const ReadOptions& options) {
  if (!options.on_format) return;
  std::string taken_for = file.taken_for;
  if (!file.compression.empty()) {
    taken_for = file.compression + (taken_for.empty() ? "" : " of " + taken_for);
  }
  options.on_format(file.format, taken_for);
}

// Where conversations are wanted; an archive's members are looked at one by one.
void check_chat(InputFormat format, const fs::path& path, const ReadOptions& options) {
  const bool may_be = format == InputFormat::kJson || format == InputFormat::kJsonLines ||
                      format == InputFormat::kTar || format == InputFormat::kUnknown ||
                      is_table(format);
  if (options.chat == nullptr || may_be) return;
  const bool has_rows = format == InputFormat::kCsv || format == InputFormat::kTsv;
  const std::string advice = fmt::format(
      "; `python3 -c \"import csv, json, sys; [print(json.dumps(row)) for row in "
      "csv.DictReader(sys.stdin{})]\" < {} > chat.jsonl` makes one",
      format == InputFormat::kTsv ? ", delimiter='\\t'" : "", shell_word(path.string()));
  throw ForeignFile(
      fmt::format("{}: {}: --chat-template renders conversations of .jsonl, .json, .parquet and "
                  ".arrow files: expected one of these{}",
                  path.string(), title_of(format), has_rows ? advice : ""));
}

// `member`: its bytes; null: those of `path`.
void read_table(InputFormat format, const fs::path& path, ByteSource* member,
                const ReadOptions& options, const DocumentVisitor& visit) {
  const bool is_parquet = format == InputFormat::kParquet;
  if (member == nullptr) {
    return is_parquet ? read_parquet(path, options, visit) : read_arrow(path, options, visit);
  }
  const Spooled spooled(*member, options.scratch, path.string());
  is_parquet ? read_parquet(path, options, visit, spooled.ranges())
             : read_arrow(path, options, visit, spooled.bytes());
}

// Of all formats that are read from the first byte to the last.
void read_stream(OpenedInput file, const fs::path& path, int depth, const ReadOptions& options,
                 const DocumentVisitor& visit) {
  const std::string name = path.string();
  switch (file.format) {
    case InputFormat::kTar:
      return read_archive(std::move(file.source), path, depth, options, visit);
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
  read_text(std::move(file.source), path, options, visit);
}

void read_input(Input input, const ReadOptions& asked, const DocumentVisitor& visit) {
  const fs::path& path = input.path;
  ReadOptions options = asked;
  if (!options.bytes.expansion) options.bytes.expansion = std::make_shared<Expansion>();
  OpenedInput file;
  file.format = named_format(path, options);
  if (file.format == InputFormat::kPacked || is_table(file.format)) {
    tell(file, options);
    if (file.format == InputFormat::kPacked) refuse_packed(path);
    check_chat(file.format, path, options);
    return read_table(file.format, path, input.member.get(), options, visit);
  }
  const bool is_plain = is_plain_file(input), is_whole = options.document_separator.empty();
  if (file.format == InputFormat::kText && is_plain && is_whole) {
    tell(file, options);
    check_chat(file.format, path, options);
    if (read_text(path, options, visit)) return;
  }
  const bool is_member = input.member != nullptr;
  file.source = is_member
                    ? unpack_bytes(std::move(input.member), path, options.bytes, &file.compression)
                    : open_bytes(path, options.bytes, &file.compression);
  look(file, path, options);
  if (is_table(file.format)) {
    if (!file.compression.empty() || is_named_compressed(path)) {
      refuse_packed_table(path, is_named_compressed(path) ? compression_named(path) : nullptr);
    }
    tell(file, options);
    check_chat(file.format, path, options);
    return read_table(file.format, path, is_member ? file.source.get() : nullptr, options, visit);
  }
  tell(file, options);
  check_chat(file.format, path, options);
  // A large text is mapped.
  const bool is_text = file.format == InputFormat::kText && is_whole;
  if (is_text && is_plain && file.compression.empty() && read_text(path, options, visit)) return;
  read_stream(std::move(file), path, input.depth, options, visit);
}

}  // namespace

void read_documents(const fs::path& path, const ReadOptions& options,
                    const DocumentVisitor& visit) {
  if (!is_object_url(path) && is_lfs_pointer_file(path)) refuse_pointer(path);
  read_input({path}, options, visit);
}

void read_member(std::unique_ptr<ByteSource> source, const fs::path& path, int depth,
                 const ReadOptions& options, const DocumentVisitor& visit) {
  read_input({path, std::move(source), depth}, options, visit);
}

}  // namespace skein
