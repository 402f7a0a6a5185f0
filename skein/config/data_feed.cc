#include "skein/config/data_feed.h"

#include "skein/objects/url.h"

namespace skein {

std::vector<NamedCorpus> missing_corpora(const Config& config) {
  std::vector<NamedCorpus> named = {{"data.train", config.data.train},
                                    {"data.validation", config.data.validation}};
  for (const DataSource& source : config.data.source) named.push_back({"data.source", source.path});
  for (const DataSource& set : config.data.validation_set) {
    named.push_back({"data.validation_set", set.path});
  }
  std::erase_if(named, [](const NamedCorpus& corpus) {
    std::error_code ignored;
    return corpus.path.empty() || is_object_url(corpus.path) ||
           fs::status(corpus.path, ignored).type() != fs::file_type::not_found;
  });
  return named;
}

void require_corpora(const Config& config) {
  for (const NamedCorpus& corpus : missing_corpora(config)) open_corpus(corpus.path, corpus.key);
}

}  // namespace skein
