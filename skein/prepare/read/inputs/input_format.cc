#include "skein/prepare/read/inputs/input_format.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "skein/base/error.h"
#include "skein/prepare/read/bytes/foreign_files.h"
#include "skein/prepare/read/bytes/tar.h"

namespace skein {
namespace {

struct FormatSuffix {
  const char* text;
  InputFormat format;
};

constexpr FormatSuffix kEndings[] = {
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
    {".tar", InputFormat::kTar},
    {".txt", InputFormat::kText},
    {".text", InputFormat::kText},
    {".md", InputFormat::kText},
    {".rst", InputFormat::kText},
    {".tex", InputFormat::kText},
    {".htm", InputFormat::kText},
    {".html", InputFormat::kText},
    {".xml", InputFormat::kText},
};

struct PackedEnding {
  const char* text;
  const char* what;
  const char* command;
};

constexpr PackedEnding kPackedEndings[] = {
    {".zip", "a zip archive", "unzip -d {1} {0}"},
    {".7z", "a 7z archive", "7z x {}"},
    {".rar", "a RAR archive", "unrar x {}"},
    {".z", "data that compress compressed", "uncompress {}"},
    {".lzo", "data that lzop compressed", "lzop -d {}"},
    {".sz", "data that snappy compressed", "snzip -d {}"},
    {".snappy", "data that snappy compressed", "snzip -d {}"},
    {".cpio", "a cpio archive", "cpio -idF {}"},
};

}  // namespace

InputFormat input_format(const fs::path& path, bool as_text) {
  const std::string name = lower_case(path.filename().string()), inside = name_inside(path);
  for (const PackedEnding& packed : kPackedEndings) {
    if (inside.ends_with(packed.text)) return InputFormat::kPacked;
  }
  for (const auto& [ending, format] : kEndings) {
    if (!inside.ends_with(ending)) continue;
    const bool is_binary = format == InputFormat::kParquet || format == InputFormat::kArrow;
    if (is_binary && inside != name) return InputFormat::kPacked;
    const bool stays = is_binary || format == InputFormat::kWarc || format == InputFormat::kTar;
    return as_text && !stays ? InputFormat::kText : format;
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

InputFormat format_of_bytes(std::string_view head) {
  if (head.starts_with("PAR1")) return InputFormat::kParquet;
  // An Arrow stream does not begin with UTF-8.
  if (head.starts_with("ARROW1") || head.starts_with("\xff\xff\xff\xff")) {
    return InputFormat::kArrow;
  }
  if (head.starts_with("WARC/1.") || head.starts_with("WARC/0.")) return InputFormat::kWarc;
  return is_tar(head) ? InputFormat::kTar : InputFormat::kUnknown;
}

void refuse_packed(const fs::path& path) {
  const std::string inside = name_inside(path);
  for (const PackedEnding& packed : kPackedEndings) {
    if (!inside.ends_with(packed.text)) continue;
    throw ForeignFile(
        fmt::format("{}: {}, which is not read: `{}` unpacks it; then name what was in it",
                    path.string(), packed.what, command_on(packed.command, path)));
  }
  refuse_packed_table(path, compression_named(path));
}

void refuse_packed_table(const fs::path& path, const Compression* compression) {
  throw ForeignFile(fmt::format(
      "{}: {}, compressed as a whole: expected the file itself, which is compressed inside; `{}` "
      "decompresses it first",
      path.string(), title_of(input_format(fs::path(name_inside(path)))),
      command_on(
          fmt::format("{} {{}}", compression == nullptr ? "gzip -d" : compression->command).c_str(),
          path)));
}

const char* title_of(InputFormat format) {
  switch (format) {
    case InputFormat::kText:
      return "text";
    case InputFormat::kJsonLines:
      return "JSON lines";
    case InputFormat::kJson:
      return "JSON";
    case InputFormat::kCsv:
    case InputFormat::kTsv:
      return "a table";
    case InputFormat::kParquet:
      return "Parquet";
    case InputFormat::kArrow:
      return "Arrow";
    case InputFormat::kWarc:
      return "WARC";
    case InputFormat::kTar:
      return "a tar archive";
    default:
      return "a file";
  }
}

}  // namespace skein
