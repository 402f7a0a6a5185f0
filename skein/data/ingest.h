// Text in whatever files it comes, into one corpus: `skein data ingest`.
//
// Inputs   files, or folders: inputs.h says how these are walked, readers.h what each kind of file
//          gives.
// Output   docs/corpus_format.md; empty documents are left out. The same inputs give the
//          same bytes.
// Errors   Error naming file and line: a damaged or unfit JSONL, Parquet or Arrow file, or a file
//          named by the caller that holds no documents, stops everything and leaves `out` as it
//          was. In a folder, plain files that are not UTF-8 text, .json, .csv and .tsv files
//          without the column of documents, and archives are passed over, counted and told.
//          Error{kUsage}: an output that exists, without `overwrite`, or that cannot be a file.
// Memory   bounded (readers.h, corpus_writer.h), whatever the size of the corpus
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/file.h"

namespace skein {

struct IngestOptions {
  // Where the documents held out for validation go; empty: none are. A document is held out by a
  // hash of its index, with probability `validation_fraction`; of a document of 1 MiB and more the
  // last `validation_fraction` is held out instead, so that a corpus of a few large texts has
  // validation text as well. A corpus so small that nothing was held out gives the end of its last
  // document.
  fs::path validation_out;
  std::optional<double> validation_fraction;  // default 0.01

  int64_t max_document_bytes = int64_t{256} << 20;  // of a JSON line, a field, compressed text
  bool skip_invalid_lines = false;                  // of JSON: count them instead of stopping
  std::string text_column = "text";                 // the key or column that holds the documents
  bool as_text = false;    // files named as JSON or tables are documents as they stand
  bool overwrite = false;  // outputs that exist
};

struct IngestProgress {
  int64_t num_files = 0;  // in all
  int64_t num_files_done = 0;
  int64_t num_documents = 0;
  int64_t num_bytes = 0;  // of text
};

struct IngestReport {
  int64_t num_files = 0;  // that were read
  int64_t num_documents = 0;
  int64_t num_bytes = 0;
  int64_t num_validation_documents = 0;
  int64_t num_validation_bytes = 0;
  int64_t num_empty_documents = 0;              // left out
  int64_t num_skipped_files = 0;                // binary, not UTF-8, or without documents
  int64_t num_invalid_lines = 0;                // skipped
  std::vector<std::string> warnings;            // the first few of what was skipped, a line each
  std::vector<std::string> passed_over, notes;  // of inputs.h
};

// `on_progress`, where given, is called after every file and every few MiB of text.
IngestReport ingest(const std::vector<fs::path>& inputs, const fs::path& out,
                    const IngestOptions& options = {},
                    const std::function<void(const IngestProgress&)>& on_progress = {});

}  // namespace skein
