// One file of documents: Arrow (a stream or a file), Parquet, JSON lines, JSON (a list of objects)
// or CSV, by the ending of its name; .gz behind it: compressed.
//
// JSON and CSV are read by Arrow's readers, which Hugging Face's `datasets` uses as well: columns
// get one type each, and a key that a row lacks is None there.
//
// Limits   2 GiB when decompressed
// Errors   Error{kInvalid | kUnsupported | kIo}; each names the file
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "skein/evaluate/documents/documents.h"

namespace skein {

// The rows of `files`, in order; all have the same columns.
Documents read_table_files(const std::vector<std::filesystem::path>& files);

// The bytes of a file; of *.gz, what they decompress to.
std::string decompressed_file(const std::filesystem::path& file);

// Whether the ending of the name is of a kind that is read.
bool is_table_file(const std::filesystem::path& file);

}  // namespace skein
