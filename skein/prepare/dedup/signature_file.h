// What the documents of a piece were signed with, kept beside the piece (prepare/piece.h): the file
// that a machine leaves for the one that sorts and clusters, and that a restart takes as it is.
//
// Format   STEM.signatures        a record for each document of the piece, in their order:
//                                 a SignatureHeader, then num_band_keys keys and num_passages
//                                 hashes of passages, 8 bytes each; little-endian
//          STEM.signatures.json   the key, the number of documents and bytes, and xxh3-128 of the
//                                 file; written last, so that what has one is finished
//          The key holds all options that the signatures follow from (signatures.h).
// Errors   Error{kIo | kNoSpace | kNotFound | kCorrupt} naming the file
// Memory   a MiB to write, 8 MiB of mapped pages to read, or a larger document's record
// Threads  an object: one at a time
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/prepare/dedup/clusters/document_table.h"
#include "skein/prepare/piece_file.h"

namespace skein {

struct SignatureHeader {
  DocumentEntry entry;
  uint64_t sets = 0;           // that it shares words with (evaluation_sets.h), a bit each
  uint32_t num_band_keys = 0;  // of a document with such a set none, and of one without words
  uint32_t num_passages = 0;   // likewise
};

struct DocumentSignature {
  const SignatureHeader& header;
  std::span<const uint64_t> band_keys, passages;
};

class SignatureFile {
 public:
  explicit SignatureFile(const fs::path& stem);
  // Whole records of so many documents.
  void append(std::span<const uint64_t> records, uint64_t num_documents);
  void finish(const Json& key);

 private:
  fs::path stem_;
  PieceFile file_;
  uint64_t num_documents_ = 0;
};

// Whether there are finished signatures of the piece STEM, of so many documents, with this key.
bool has_signatures(const fs::path& stem, const Json& key, uint64_t num_documents);

// Those of all documents, in order; they must be there.
void read_signatures(const fs::path& stem, uint64_t num_documents,
                     const std::function<void(const DocumentSignature&)>& visit);

}  // namespace skein
