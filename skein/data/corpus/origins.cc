#include "skein/data/corpus/origins.h"

namespace skein {

std::optional<SourceRecord> CorpusOrigins::find(int64_t document) {
  const Corpus::Home home = corpus_->home(document);
  const fs::path& file = home.file;
  auto sources = sources_.find(file);
  if (sources == sources_.end()) {
    std::optional<CorpusSources> found = CorpusSources::beside(file);
    if (found) found->check_is_of(file, home.num_documents, home.num_bytes);
    sources = sources_.emplace(file, std::move(found)).first;
  }
  if (!sources->second) return std::nullopt;
  return sources->second->find(home.document);
}

}  // namespace skein
