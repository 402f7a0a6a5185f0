// Reads documents from the kinds of files in which people keep text.
//
//   .jsonl, .ndjson    one JSON object a line; the document is its string `text`; also .jl and
//                      .jsonlines
//   .json              the same lines, or one array of such objects, or one object
//   .csv, .tsv         the column `text` of a table whose first line names the columns
//   .parquet, .pq      the column `text`
//   .arrow, .feather   the column `text` of an Arrow IPC stream or file, compressed or not; also
//                      .ipc and .arrows
//   `text` is the name that is asked for; where none is, and a file has none so named, the next of
//   kTextColumns that it has (of JSON, that the first object has).
//   .txt, .md, …       the file is one document, or several: document_separator
//   .wet, .warc        the `conversion` records of a web archive, as Common Crawl's WET files
//   anything else      as its first bytes say (Parquet, Arrow, WARC, lines of JSON objects);
//                      otherwise the file is one document
//
// All but Parquet and Arrow may be compressed: byte_source.h.
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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/base/json.h"
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
  kWarc,
  kLines,    // of text, a document each; by choice alone
  kPacked,   // an archive, or in a compression that is not supported
  kUnknown,  // by its name: its first bytes say
};

struct ReadOptions {
  int64_t max_document_bytes = int64_t{256} << 20;  // of a JSON line, a field, compressed text
  std::string text_column;  // the key or column that holds the documents; empty: found
  bool as_text = false;     // files named as JSON or tables are documents as they are
  // Stands between the documents of a text file; the line breaks about it are neither's. Empty: a
  // file is one document.
  std::string document_separator;
  std::optional<InputFormat> format;  // of every file, whatever its name and first bytes say
  // Called before the first document; `by_content` is what the file was taken for by its first
  // bytes, empty where its name said so.
  std::function<void(InputFormat format, const std::string& by_content)> on_format;
  // Called with the column where it is not the first of kTextColumns, and nobody named it.
  std::function<void(const std::string& column)> on_text_column;
  Utf8Policy utf8;
  ByteOptions bytes;
  fs::path scratch;  // where an object lies while it is mapped, without a name; empty: TMPDIR
  // Called for a JSON line that is no document; if empty, the error is thrown.
  std::function<void(const Error&)> on_invalid_line;
};

// The formats that a person may name. Of `lines` each line of a text is a document.
constexpr const char* kFormatNames[] = {"text", "lines",   "jsonl", "json",
                                        "csv",  "parquet", "arrow", "warc"};
InputFormat format_named(const std::string& name);
std::string name_of(const std::optional<InputFormat>& format);  // empty: none

// Where documents are looked for unless a column is named, in this order: what FineWeb, The Stack
// and RedPajama call it.
constexpr const char* kTextColumns[] = {"text", "content", "raw_content"};
// The names that a file may have for it, by choice; and the tale of the one that was taken.
std::vector<std::string> text_columns(const ReadOptions& options);
void tell_text_column(const std::string& column, const ReadOptions& options);

// What the documents of a file depend on besides its bytes.
Json reading_key(const ReadOptions& options, bool skips_invalid_lines);

// By the file's name.
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
// One or the other, as the first lines say.
void read_json(std::unique_ptr<PeekedSource> source, const std::string& name,
               const ReadOptions& options, const DocumentVisitor& visit);
// Whether the first line that is not blank, or most of the first lines, are JSON objects.
bool looks_like_json_lines(PeekedSource& source, const ReadOptions& options);
// What becomes of a line or value that is no document: on_invalid_line, or the error, with the
// advice to pass over such lines where it is broken or documents came before it.
void pass_over_line(const Error& error, const ReadOptions& options, bool is_among_others);
// JSON values one after another, or the elements of one array, wherever the lines break.
void read_json_values(std::unique_ptr<ByteSource> source, const std::string& name,
                      const ReadOptions& options, const DocumentVisitor& visit);
void read_csv(std::unique_ptr<ByteSource> source, const std::string& name, char delimiter,
              const ReadOptions& options, const DocumentVisitor& visit);
void read_parquet(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
void read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
// Documents with `separator` between them, which is not empty; empty ones are counted, not given.
void read_separated(std::unique_ptr<ByteSource> source, const fs::path& path,
                    const std::string& separator, const ReadOptions& options,
                    const DocumentVisitor& visit);
// The `conversion` records of a web archive. Error{kInvalid} where it has records, and none such.
void read_warc(std::unique_ptr<ByteSource> source, const std::string& name,
               const ReadOptions& options, const DocumentVisitor& visit);
// What becomes of a text before it is a document. False: it is left out.
bool accept_text(std::string_view& text, std::string& repaired, const std::string& where,
                 const ReadOptions& options);

}  // namespace skein
