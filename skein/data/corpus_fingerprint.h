// What tells one corpus from another without reading all of it: a run that goes on must go on with
// the text that it began with, wherever the file has moved to.
//
// Formula  xxh3-128 of the length of every document, in order, and of windows of text: kWindows of
//          them, evenly spaced over the line of all bytes, of kWindowBytes each. A corpus of at
//          most kWindows * kWindowBytes (4 MiB) is hashed whole
// Cost     as opening the corpus: 8 bytes a document; and at most 4 MiB of text
// Misses   a change that keeps every document's length and lies between two windows
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/json.h"
#include "skein/data/blocks.h"

namespace skein {

struct CorpusFingerprint {
  static constexpr int64_t kWindows = 256;
  static constexpr int64_t kWindowBytes = int64_t{16} << 10;

  int64_t documents = 0;
  int64_t bytes = 0;  // of text
  std::string xxh3_128;

  bool operator==(const CorpusFingerprint&) const = default;
};

// Of what a run reads; how the file is divided into record batches is not part of it.
CorpusFingerprint corpus_fingerprint(const DocumentSource& source);

// {"documents", "bytes", "xxh3_128"}
Json to_json(const CorpusFingerprint& fingerprint);

}  // namespace skein
