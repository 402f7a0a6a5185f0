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
//   .tar               its members, each read as a file of a folder is, in the archive's order
//   anything else      as its first bytes say (Parquet, Arrow, WARC, tar, lines of JSON objects);
//                      otherwise the file is one document
//
// All but Parquet and Arrow may be compressed: compression.h. What is known for something else than
// documents is a ForeignFile: foreign_files.h.
//
// Errors   Error{kInvalid | kCorrupt | kNotFound | kIo} beginning with the file and, if there is
//          one, the line or row (both from 1): `part.jsonl:17: ...`. Text that is not UTF-8 is
//          kInvalid, unless `utf8` says otherwise, as is a file without such documents.
// Memory   bounded: a line or a document (`max_document_bytes`), a Parquet page or a decoded Arrow
//          batch at a time. Parquet and Arrow in an archive lie in `scratch` meanwhile
// Threads  functions only use their arguments
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/data/corpus/corpus.h"
#include "skein/objects/range_reader.h"
#include "skein/prepare/read/bytes/byte_source.h"
#include "skein/prepare/read/bytes/foreign_files.h"
#include "skein/prepare/read/bytes/utf8_policy.h"
#include "skein/prepare/read/inputs/input_format.h"
#include "skein/prepare/read/inputs/inputs.h"

namespace skein {

class ChatRenderer;

// Of an archive.
struct ArchiveMember {
  fs::path path;       // the archive's, and the member's name
  fs::path archive;    // the one that holds it
  int64_t number = 0;  // among all that the archive lists, from 1
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
  // Called for a text in which the separator does not stand.
  std::function<void()> on_no_separator;
  // Called for each member of an archive that is a file; `read` reads its documents. Empty: they
  // are read one after another, and the first error ends it.
  std::function<void(const ArchiveMember& member, const std::function<void()>& read)> on_member;
  // Called with what an archive holds besides: why, how many, and the first.
  std::function<void(const std::string& why, int64_t count, const std::string& first)> on_left_out;
  // JSON objects are conversations, and what it renders of each is its document; null: they are
  // not.
  std::shared_ptr<const ChatRenderer> chat;
  // Called before a document with the bytes of it that the assistant wrote, where `chat` finds
  // them.
  std::function<void(std::vector<ByteRange> spans)> on_spans;
  Utf8Policy utf8;
  ByteOptions bytes;
  fs::path scratch;  // where an object lies while it is mapped, without a name; empty: TMPDIR
  // Called for a JSON line that is no document; if empty, the error is thrown.
  std::function<void(const Error&)> on_invalid_line;
};

// Where documents are looked for unless a column is named, in this order: what FineWeb, The Stack
// and RedPajama call it.
constexpr const char* kTextColumns[] = {"text", "content", "raw_content"};
// The names that a file may have for it, by choice; and the tale of the one that was taken.
std::vector<std::string> text_columns(const ReadOptions& options);
void tell_text_column(const std::string& column, const ReadOptions& options);

// Throws Error{kUsage} for options that contradict each other.
void check_reading(const ReadOptions& options);
// The same for a separator that none of these files can have, by their names.
void check_separator(const ReadOptions& options, const std::vector<InputFile>& files);

// What the documents of a file depend on besides its bytes.
Json reading_key(const ReadOptions& options, bool skips_invalid_lines);

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
// JSON values one after another, or the elements of one array, wherever the lines break.
void read_json_values(std::unique_ptr<ByteSource> source, const std::string& name,
                      const ReadOptions& options, const DocumentVisitor& visit);
void read_csv(std::unique_ptr<ByteSource> source, const std::string& name, char delimiter,
              const ReadOptions& options, const DocumentVisitor& visit);
// `spooled`: the bytes, where they are of no file or object of that name.
void read_parquet(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit,
                  std::unique_ptr<RangeReader> spooled = nullptr);
void read_arrow(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit,
                std::span<const std::byte> spooled = {});
// Throws ForeignFile for a page of HTML that has the name of JSON or a table.
void refuse_page(std::string_view head, const fs::path& path, InputFormat format);
// Throws ForeignFile for what was taken for a table of this format, and begins as something else.
void refuse_other_table(std::string_view head, const fs::path& path, InputFormat format);
// A plain file that is one document. False, and nothing is read, if it is compressed.
bool read_text(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit);
// The same of bytes that come from elsewhere.
void read_text(std::unique_ptr<ByteSource> source, const fs::path& path, const ReadOptions& options,
               const DocumentVisitor& visit);
// Throws ForeignFile for a text whose first bytes say that it is something else, unless it is taken
// as it stands.
void refuse_other_text(std::string_view head, const fs::path& path, const ReadOptions& options);
// Whether a text is taken whatever it may be, because the caller says so.
bool takes_as_it_stands(const ReadOptions& options);
// Documents with `separator` between them, which is not empty; empty ones are counted, not given.
void read_separated(std::unique_ptr<ByteSource> source, const fs::path& path,
                    const std::string& separator, const ReadOptions& options,
                    const DocumentVisitor& visit);
// The `conversion` records of a web archive. Error{kInvalid} where it has records, and none such.
void read_warc(std::unique_ptr<ByteSource> source, const std::string& name,
               const ReadOptions& options, const DocumentVisitor& visit);
// The members of a tar archive. `depth`: how many archives it lies in.
void read_archive(std::unique_ptr<ByteSource> source, const fs::path& path, int depth,
                  const ReadOptions& options, const DocumentVisitor& visit);
// The documents of a member, whose bytes come by once.
void read_member(std::unique_ptr<ByteSource> source, const fs::path& path, int depth,
                 const ReadOptions& options, const DocumentVisitor& visit);
// What becomes of a text before it is a document. False: it is left out.
bool accept_text(std::string_view& text, std::string& repaired, const std::string& where,
                 const ReadOptions& options);

}  // namespace skein
