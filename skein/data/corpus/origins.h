// Where the documents of a corpus of any number of files came from, by what lies beside each file
// (corpus_sources.h).
//
// Errors   those of CorpusSources, when a document of that file is asked for
// Threads  one caller at a time
#pragma once

#include <map>
#include <optional>
#include <string>

#include "skein/data/corpus/corpus.h"
#include "skein/data/corpus/corpus_sources.h"

namespace skein {

class CorpusOrigins {
 public:
  // `corpus` must outlive this.
  explicit CorpusOrigins(const Corpus& corpus) : corpus_(&corpus) {}

  // Nothing where no file beside the corpus tells. Files are opened as they are needed.
  std::optional<SourceRecord> find(int64_t document);

 private:
  const Corpus* corpus_;
  std::map<fs::path, std::optional<CorpusSources>> sources_;  // of each file
};

}  // namespace skein
