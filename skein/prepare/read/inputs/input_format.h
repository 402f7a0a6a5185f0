// What a file is read as: by its name, by its first bytes, or because a person says so.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"
#include "skein/prepare/read/bytes/compression.h"

namespace skein {

enum class InputFormat {
  kText,
  kJsonLines,
  kJson,
  kCsv,
  kTsv,
  kParquet,
  kArrow,
  kWarc,
  kLines,    // of text, a document each; by choice alone
  kTar,      // an archive, whose members are read as the files of a folder are
  kPacked,   // an archive or a compression that is not read
  kUnknown,  // by its name: its first bytes say
};

// The formats that a person may name. Of `lines` each line of a text is a document.
constexpr const char* kFormatNames[] = {"text", "lines",   "jsonl", "json",
                                        "csv",  "parquet", "arrow", "warc"};
InputFormat format_named(const std::string& name);
std::string name_of(const std::optional<InputFormat>& format);  // empty: none

// By the file's name. `as_text`: what is named as JSON or a table is a text.
InputFormat input_format(const fs::path& path, bool as_text = false);

// By the first bytes, of which kForeignHeadBytes say it: Parquet, Arrow, WARC, tar; else kUnknown.
InputFormat format_of_bytes(std::string_view head);

// Throws ForeignFile that names the program which unpacks a file of kPacked.
[[noreturn]] void refuse_packed(const fs::path& path);
// The same for Parquet or Arrow that is compressed as a whole.
[[noreturn]] void refuse_packed_table(const fs::path& path, const Compression* compression);

// "Parquet", for a note to a person.
const char* title_of(InputFormat format);

}  // namespace skein
