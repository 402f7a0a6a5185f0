// A corpus, its tokenizer and its lanes: the data source of the training loop.
#pragma once

#include <memory>
#include <span>

#include "skein/config/config.h"
#include "skein/data/blocks.h"
#include "skein/data/loader.h"
#include "skein/data/tokenizer.h"

namespace skein {

class DataFeed {
 public:
  // Throws where the corpus cannot be read or is smaller than one batch; `key` is the configuration
  // key that errors name. `tokenizer` must outlive the feed.
  DataFeed(const std::string& corpus, const Tokenizer& tokenizer, const Config& config,
           int64_t vocab_size, const std::string& key = "data.train")
      : corpus_(open_corpus(corpus, key)),
        documents_(corpus_),
        context_(documents_, tokenizer, lane_options(config, vocab_size)) {}
  DataFeed(const DataFeed&) = delete;
  DataFeed& operator=(const DataFeed&) = delete;

  const LaneContext& context() const { return context_; }
  const Corpus& corpus() const { return corpus_; }

  static LaneOptions lane_options(const Config& config, int64_t vocab_size) {
    LaneOptions options;
    options.seed = static_cast<uint64_t>(config.run.seed);
    options.global_sequences = config.batch.global_sequences;
    options.sequence_length = config.data.sequence_length;
    options.document_mask = config.data.document_mask;
    options.prepend_bos = config.data.document_mask;
    options.vocab_size = vocab_size;
    return options;
  }

 private:
  Corpus corpus_;
  CorpusDocuments documents_;
  LaneContext context_;
};

}  // namespace skein
