// Reads documents from the kinds of files in which people keep text.
//
//   .jsonl, .ndjson    one JSON object a line; the document is its string `text`
//   .json              the same lines, or one array of such objects, or one object
//   .csv, .tsv         the column `text` of a table whose first line names the columns
//   .parquet           the column `text`
//   .arrow, .feather   the column `text` of an Arrow IPC stream or file, compressed or not
//   anything else      as its first bytes say (Parquet, Arrow); otherwise the file is one document
//
// All but Parquet and Arrow may be compressed, with a further ending .gz or .zst.
//
// Errors   Error{kInvalid | kCorrupt | kNotFound | kIo} beginning with the file and, if there is
//          one, the line or row (both from 1): `part.jsonl:17: ...`. Text that is not UTF-8 is
//          kInvalid, unless `utf8` says otherwise, as is a file without such documents.
// Memory   bounded: a line or a document (`max_document_bytes`), a Parquet page or a decoded Arrow
//          batch at a time
// Threads  functions only use their arguments
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/prepare/read/byte_source.h"
#include "skein/prepare/read/utf8.h"

namespace skein {

enum class InputFormat {
  kText,
  kJsonLines,
  kJson,
  kCsv,
  kTsv,
  kParquet,
  kArrow,
  kPacked,  // an archive, or in a compression that is not supported
};

struct ReadOptions {
  int64_t max_document_bytes = int64_t{256} << 20;  // of a JSON line, a field, compressed text
  std::string text_column = "text";                 // the key or column that holds the documents
  bool as_text = false;  // files named as JSON or tables are documents as they are
  Utf8Policy utf8;
  ByteOptions bytes;
  fs::path scratch;  // where an object lies while it is mapped, without a name; empty: TMPDIR
  // Called for a JSON line that is no document; if empty, the error is thrown.
  std::function<void(const Error&)> on_invalid_line;
};

// By the file's name, otherwise by its first bytes.
InputFormat input_format(const fs::path& path, bool as_text = false);

// Lowers ASCII letters only, for endings of file names.
std::string lower_case(std::string text);

// `record` counts what the file holds, from 1: lines of JSONL (blank ones too), values of JSON,
// rows of a table behind its first line; a text is record 1.
using DocumentVisitor = std::function<void(std::string_view text, int64_t record)>;

// The documents of one file, in order. Views are valid during the call.
void read_documents(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);

// The functions that read_documents() chooses from.
void read_json_lines(std::unique_ptr<ByteSource> source, const std::string& name,
                     const ReadOptions& options, const DocumentVisitor& visit);
void read_json(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
// JSON values one after another, or the elements of one array, wherever the lines break.
void read_json_values(std::unique_ptr<ByteSource> source, const std::string& name,
                      const ReadOptions& options, const DocumentVisitor& visit);
void read_csv(std::unique_ptr<ByteSource> source, const std::string& name, char delimiter,
              const ReadOptions& options, const DocumentVisitor& visit);
void read_parquet(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
void read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);

}  // namespace skein
