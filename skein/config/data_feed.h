// The corpora of a run or of a validation, and their lanes: the data source of the training loop.
#pragma once

#include <iterator>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/config/batches.h"
#include "skein/config/config.h"
#include "skein/data/lanes/blocks.h"
#include "skein/data/lanes/mixture.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

class DataFeed {
 public:
  // What [data] says to train on: train or the sources. Throws where a corpus cannot be read or is
  // smaller than one batch; of several, one smaller than a batch is read again and again.
  // `tokenizer` must outlive the feed. `cache`: of corpora in a store; null: one of its own.
  // `lanes`: of the run's checkpoint; 0: those of a run that begins.
  DataFeed(const Tokenizer& tokenizer, const Config& config, int64_t vocab_size,
           std::shared_ptr<ObjectCache> cache = nullptr, int64_t lanes = 0)
      : DataFeed(training_sources(config), tokenizer, config, vocab_size,
                 config.data.source.empty() ? "data.train" : "data.source", std::move(cache),
                 lanes > 0 ? lanes : num_lanes(config)) {}
  // One corpus to validate on, in `lanes` lanes, which are read once and may have less than a row
  // each; `key` is the configuration key that errors name.
  DataFeed(const std::string& path, const Tokenizer& tokenizer, const Config& config,
           int64_t vocab_size, const std::string& key, std::shared_ptr<ObjectCache> cache,
           int64_t lanes)
      : DataFeed(std::vector<DataSource>{{path, 1, ""}}, tokenizer, config, vocab_size, key,
                 std::move(cache), lanes, /*once=*/true) {}
  DataFeed(const DataFeed&) = delete;
  DataFeed& operator=(const DataFeed&) = delete;

  const Mixture& mixture() const { return mixture_; }
  const Corpus& corpus(size_t part) const {
    return std::next(entries_.begin(), static_cast<std::ptrdiff_t>(part))->corpus;
  }

  static LaneOptions lane_options(const Config& config, int64_t vocab_size, int64_t lanes,
                                  bool once = false) {
    LaneOptions options;
    options.once = once;
    options.seed = static_cast<uint64_t>(config.run.seed);
    options.global_sequences = lanes;
    options.sequence_length = config.data.sequence_length;
    options.document_mask = config.data.document_mask;
    options.prepend_bos = config.data.document_mask;
    options.special_tokens =
        config.data.special_tokens == "parse" ? SpecialTokens::kParse : SpecialTokens::kText;
    options.vocab_size = vocab_size;
    options.completion_only = config.data.loss_on == "completion";
    if (config.data.objective == "masked") {
      options.mask = {config.data.mask_probability, config.data.mask_whole_words,
                      config.data.mask_token};
    }
    return options;
  }

 private:
  struct Entry {
    Corpus corpus;
    CorpusDocuments documents;
    LaneContext context;

    Entry(const DataSource& source, const Tokenizer& tokenizer, const LaneOptions& options,
          const std::string& key, std::shared_ptr<ObjectCache> cache)
        : corpus(open_corpus(source.path, key, std::move(cache))),
          documents(corpus),
          context(documents, tokenizer, options) {}
  };

  DataFeed(const std::vector<DataSource>& sources, const Tokenizer& tokenizer, const Config& config,
           int64_t vocab_size, const std::string& key, std::shared_ptr<ObjectCache> cache,
           int64_t lanes, bool once = false)
      : mixture_(open(
            entries_, sources, tokenizer, lane_options(config, vocab_size, lanes, once), key,
            cache ? std::move(cache) : std::make_shared<ObjectCache>(config.data.cache_bytes))) {}

  static std::vector<DataSource> training_sources(const Config& config) {
    if (!config.data.source.empty()) return config.data.source;
    return {{config.data.train, 1, ""}};
  }

  static Mixture open(std::list<Entry>& entries, const std::vector<DataSource>& sources,
                      const Tokenizer& tokenizer, LaneOptions options, const std::string& key,
                      const std::shared_ptr<ObjectCache>& cache) {
    options.may_be_small = sources.size() > 1 || options.once;
    std::vector<Mixture::Source> parts;
    for (const DataSource& source : sources) {
      entries.emplace_back(source, tokenizer, options, key, cache);
      parts.push_back({&entries.back().context, source.name, source.weight});
    }
    return Mixture(std::move(parts));
  }

  std::list<Entry> entries_;  // which stay where they are
  Mixture mixture_;
};

struct NamedCorpus {
  std::string key;  // "data.train"
  std::string path;
};

// Those of [data] that do not exist. Looks into no bucket.
std::vector<NamedCorpus> missing_corpora(const Config& config);

// Throws as DataFeed does where a corpus does not exist.
void require_corpora(const Config& config);

}  // namespace skein
