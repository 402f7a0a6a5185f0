// A piece: the documents of some inputs, as one worker handed them on, in files that a restart
// takes as they are.
//
// Format   STEM.text   the documents one after another; joined.text beside it may have them instead
//                      (joined_texts.h)
//          STEM.rows   a PieceRow for each of them
//          STEM.spans  where documents say which of their bytes count: for each of them the number
//          of
//                      spans, and beginning and end of each
//          STEM.json   the PieceReport, with hashes of both; written last, so that a piece is
//                      finished that has one. Hashes say after a loss of power what is whole, so
//                      that nothing waits for the disk and what is removed soon is not written.
// Errors   Error{kIo | kNoSpace | kNotFound | kCorrupt} naming the file
// Memory   a MiB to write, pages of the rows to read
// Threads  an object: one at a time
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/data/corpus/corpus.h"
#include "skein/prepare/joined_texts.h"
#include "skein/prepare/piece_file.h"

namespace skein {

// Where a document came from: a file, and its record there (DocumentVisitor in read/readers.h).
struct Origin {
  std::string_view source;
  int64_t record = 0;
};

struct PieceRow {
  int64_t num_bytes = 0;
  int64_t source = 0;  // index in PieceReport::sources
  int64_t record = 0;
};

struct PieceReport {
  int64_t num_files = 0;          // that were read
  int64_t num_skipped_files = 0;  // of a folder, that hold no documents
  int64_t num_invalid_lines = 0;  // passed over
  int64_t num_invalid_utf8 = 0;   // documents repaired or left out: Utf8Policy
  int64_t num_documents_read = 0;
  int64_t num_bytes_read = 0;
  int64_t num_documents = 0;  // handed on
  int64_t num_bytes = 0;
  std::vector<std::string> sources;   // of the documents handed on
  std::vector<std::string> warnings;  // the first few of what was passed over, a line each
  // What nobody said and files were found to be or have: how many files, and the first
  std::map<std::string, std::pair<int64_t, std::string>> found;
  // Of files that nobody named: the first that is a text, and the first that is a table or JSON
  std::string first_text, first_table;
  std::string first_empty;    // document: its file and record
  Json counters;              // of the worker
  int64_t joined_begin = -1;  // of the text in joined.text; -1: it is in STEM.text
  bool has_spans = false;     // STEM.spans
};

// What was found of files, a line each.
std::vector<std::string> found_lines(const PieceReport& report);

class PieceOutput {
 public:
  // The text goes into `joined`, if there is one and the turn of `piece` comes meanwhile.
  explicit PieceOutput(const fs::path& stem, JoinedTexts* joined = nullptr, size_t piece = 0,
                       bool has_spans = false);

  void append(std::string_view text, const Origin& origin, std::span<const ByteRange> spans = {});

  // Writes `report` with what was appended, and `key`, by which it is found.
  void finish(const std::string& key, PieceReport& report);

 private:
  int64_t source_index(std::string_view source);
  void join_at_turn();
  void write_behind();

  fs::path stem_;
  JoinedTexts* joined_;
  size_t piece_;
  int64_t joined_begin_ = -1;
  int64_t next_look_ = 0;  // bytes of text at which to see about the turn, or the disk
  PieceFile text_, rows_;
  std::optional<PieceFile> spans_;
  std::vector<std::string> sources_;
  std::unordered_map<std::string, int64_t> source_indices_;
  int64_t last_source_ = -1;
  int64_t num_documents_ = 0;
};

// The report of the finished piece STEM whose key is `key`; nothing if there is none.
std::optional<PieceReport> find_piece(const fs::path& stem, const std::string& key);

// Copies the text of a finished piece into `joined`, whose turn it is, or from there to STEM.text,
// and says so in its report.
void join_piece(const fs::path& stem, PieceReport& report, JoinedTexts& joined, int64_t begin);
void part_piece(const fs::path& stem, PieceReport& report);

struct PieceDocument {
  std::string_view text;  // mapped: read it only where it is needed
  int64_t begin = 0;      // of the text in its file
  Origin origin;
  std::span<const ByteRange> spans = {};  // as InputDocument's
};

// All documents of a finished piece, in order.
void read_piece(const fs::path& stem, const PieceReport& report,
                const std::function<void(const PieceDocument&)>& visit);

// The file in which the texts of a finished piece lie.
fs::path piece_text(const fs::path& stem, const PieceReport& report);
fs::path joined_text(const fs::path& work_folder);

}  // namespace skein
