// Identifies a corpus without reading all of it: a run that continues must use the text that it
// began with, wherever the file has moved.
//
// Formula  xxh3-128 of the lengths of documents, in order, and of kWindows windows of text of
//          kWindowBytes each, evenly spaced over the corpus's bytes. A corpus of at most
//          kWindows * kWindowBytes (4 MiB) is hashed whole. Lengths are those of all documents;
//          of more than kAllLengths (4 Mi), those of kWindows windows of kWindowLengths documents
//          each, evenly spaced over their numbers.
//          Of the loss spans, where a run reads them (data.loss_on = "completion"), a hash of its
//          own, so that the one of the text stays what it is: of the number of spans and of
//          beginning and end of each, of all documents, or, of more than kAllSpans (256 Ki), of
//          kWindows windows of kWindowLengths documents. Spans without bytes do not count
// Cost     at most 32 MiB of offsets and 4 MiB of text, whatever the size; spans of at most
//          256 Ki documents
// Misses   a change that keeps every length that is hashed and lies between two windows
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/text/json.h"
#include "skein/data/lanes/blocks.h"

namespace skein {

struct CorpusFingerprint {
  static constexpr int64_t kWindows = 256;
  static constexpr int64_t kWindowBytes = int64_t{16} << 10;
  static constexpr int64_t kAllLengths = int64_t{4} << 20;
  static constexpr int64_t kWindowLengths = 1024;
  static constexpr int64_t kAllSpans = kWindows * kWindowLengths;

  int64_t documents = 0;
  int64_t bytes = 0;  // of text
  std::string xxh3_128;
  std::string spans_xxh3_128;  // empty: nobody reads the spans

  bool operator==(const CorpusFingerprint&) const = default;
};

// The fingerprint of what a run reads; how the file is divided into record batches does not matter.
CorpusFingerprint corpus_fingerprint(const DocumentSource& source, bool reads_spans = false);

// {"documents", "bytes", "xxh3_128"}, and "loss_spans_xxh3_128" where a run reads them
Json to_json(const CorpusFingerprint& fingerprint);

}  // namespace skein
