// The compressions that are read, a row each: how files are named, how they begin, what decodes
// them.
//
// Names    .gz, .gzip; .zst, .zstd; .bz2, .bz; .xz, .lzma, .lz; .lz4; .br; and .tgz, .tzst, .tbz2,
//          .tbz, .txz, .tlz of a tar archive
// Streams  several, one after another, are read as one, as their own programs do; not of brotli
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "skein/prepare/read/bytes/byte_source.h"

namespace skein {

struct Compression {
  const char* name;
  const char* command;           // that decompresses a file
  std::string_view endings;      // of names, between spaces: " .gz .gzip "
  std::string_view tar_endings;  // the same of a tar archive: " .tgz "
  bool (*begins)(std::string_view head);
  std::unique_ptr<ByteSource> (*unpack)(std::unique_ptr<ByteSource> source,
                                        const std::string& name);
};

// So many first bytes tell which it is.
constexpr size_t kCompressionHeadBytes = 10;

// Null: none.
const Compression* compression_of(std::string_view head);
const Compression* compression_named(const fs::path& path);

inline bool is_named_compressed(const fs::path& path) { return compression_named(path) != nullptr; }

// The lower-case name of what is inside: "a.txt" of "a.txt.gz", "a.tar" of "a.tgz".
std::string name_inside(const fs::path& path);

// Lowers ASCII letters only, for endings of file names.
std::string lower_case(std::string text);

}  // namespace skein
