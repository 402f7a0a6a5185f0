// Turns text in any kind of file into one corpus: `skein data ingest`.
//
// Inputs   files or folders: inputs.h says how folders are walked, readers.h what each kind of file
//          gives.
// Output   docs/corpus_format.md; empty documents are left out. The same inputs give the same
//          bytes.
//          Outputs in a bucket are made in `work` first, and then sent (outputs.h).
// Errors   Error naming file and line: a damaged or unsuitable JSONL, Parquet or Arrow file, or a
//          file named by the caller that holds no documents, stops everything and leaves `out`
//          unchanged. In a folder, plain files that are not UTF-8 text, .json, .csv and .tsv files
//          without the column of documents, and archives are skipped, counted and reported.
//          Error{kUsage}: an output that exists, without `overwrite`, or that cannot be a file.
// Restart  what is finished lies in `<out>.work` until the corpus is: pieces.h
// Memory   bounded (readers.h, data/corpus/corpus_writer.h), whatever the size of the corpus
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/prepare/invalid_lines.h"
#include "skein/prepare/outputs.h"
#include "skein/prepare/pieces.h"

namespace skein {

// What is done to each document on its way: nothing, for `skein data ingest` itself.
struct IngestStep {
  WorkerFactory make_worker;
  Json key;                        // all that its output depends on (PiecesOptions::worker)
  const char* left_out = "empty";  // documents that are not handed on
};
IngestStep copy_documents();  // all but the empty ones

struct IngestReport;

struct IngestOptions {
  IngestStep step = copy_documents();

  // The corpus of documents held out for validation; empty: none are. A document is held out by a
  // hash of its index, with probability `validation_fraction`. Of a document of at least 1 MiB the
  // last `validation_fraction` is held out instead, so that a corpus of a few large texts has
  // validation text as well. If nothing was held out of a small corpus, the end of its last
  // document is.
  Place validation_out;
  std::optional<double> validation_fraction;  // default 0.01

  int64_t max_document_bytes = int64_t{256} << 20;  // of a JSON line, a field, compressed text
  bool skip_invalid_lines = false;                  // of JSON: count them instead of stopping
  // More than this share of lines, and than 100, are an error; of 0 any is.
  double max_invalid_lines = kMaxInvalidLines;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kFail;
  int64_t max_expansion = 1000;       // ByteOptions
  std::string text_column;            // the key or column of the documents; empty: found
  bool as_text = false;               // files named as JSON or tables are documents as they are
  std::optional<InputFormat> format;  // ReadOptions
  std::string document_separator;     // the same
  // The same; what it finds in documents becomes the column `loss_spans` of the corpora.
  std::shared_ptr<const ChatRenderer> chat;
  bool overwrite = false;           // replace outputs that exist
  fs::path work;                    // where outputs in buckets are made; empty: in TMPDIR
  std::vector<Place> also_written;  // by the caller, beside the corpora: no inputs either
  OnSent on_sent;
  int num_threads = 0;  // 0: as many as this process may use cores; the output is the same

  // The list of inputs that the corpus is a shard of (data/corpus/shard_set.h); empty: it is none.
  // A shard may be without documents.
  std::string shard_of;

  // Called once the inputs of the corpus `out` are read and counted, before it is written; what it
  // throws stops the ingestion, and the same one goes on there.
  std::function<void(const fs::path& out, const IngestReport& report)> on_read;
};

// How its inputs are read.
ReadOptions read_options(const IngestOptions& options);

// All of them that the text of a corpus follows from, whatever its inputs.
Json text_options(const IngestOptions& options);

struct IngestReport {
  int64_t num_files = 0;  // that were read
  int64_t num_documents = 0;
  int64_t num_bytes = 0;
  int64_t num_validation_documents = 0;
  int64_t num_validation_bytes = 0;
  int64_t num_left_out = 0;                     // documents that were not handed on
  std::string first_empty;                      // document: its file and record
  int64_t num_skipped_files = 0;                // binary, not UTF-8, or without documents
  int64_t num_invalid_lines = 0;                // skipped
  int64_t num_invalid_utf8 = 0;                 // documents repaired or left out
  std::vector<std::string> warnings;            // the first few of what was skipped, one line each
  std::vector<std::string> passed_over, notes;  // as in inputs.h
  std::vector<std::string> restart;             // as Pieces::notes()
  std::vector<Json> counters;                   // of the step, piece by piece
  // The output was there, made of the same inputs with the same options: nothing was read.
  bool was_finished = false;
  bool was_made = false;  // the same, but it had not been sent to its bucket: now it has
};

// `on_progress`, if given, is called some times a second, and when all inputs are read.
IngestReport ingest(const std::vector<fs::path>& inputs, const Place& out,
                    const IngestOptions& options = {},
                    const std::function<void(const PiecesProgress&)>& on_progress = {});

// The same for inputs that have been found.
IngestReport ingest(FoundInputs found, const Place& out, const IngestOptions& options,
                    const std::function<void(const PiecesProgress&)>& on_progress);

}  // namespace skein
