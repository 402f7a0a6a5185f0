#include "skein/data/corpus_origins.h"

#include "skein/base/error.h"

namespace skein {

std::optional<SourceRecord> CorpusOrigins::find(int64_t document) {
  const auto [file, index] = corpus_->home(document);
  auto sources = sources_.find(file);
  if (sources == sources_.end()) {
    sources = sources_.emplace(file, CorpusSources::beside(file)).first;
  }
  if (!sources->second) return std::nullopt;
  if (index >= sources->second->num_documents()) {
    fail(ErrorCode::kInvalid,
         "{}: tells of {} documents, and {} has more: expected the file that was written with it; "
         "remove it, or make the corpus again",
         sources_of(file).string(), sources->second->num_documents(), file.string());
  }
  return sources->second->find(index);
}

}  // namespace skein
