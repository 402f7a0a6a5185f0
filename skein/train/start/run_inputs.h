// What a run reads: its tokenizer, the model (whose vocabulary may come from the tokenizer), and
// the corpora.
//
// Errors  Error{kUsage | kNotFound | kInvalid} naming the key of the configuration and the path
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "skein/config/config.h"
#include "skein/config/data_feed.h"
#include "skein/config/run/identity.h"
#include "skein/data/lanes/loader.h"
#include "skein/model/decoder.h"

namespace skein {

class RunInputs {
 public:
  // Loads the tokenizer and the model. With `tells`, logs what an export will lack. `config` must
  // outlive this object.
  RunInputs(const Config& config, bool tells);
  // `share`: of each batch, which this rank reads. `lanes`: of the run's checkpoint; 0: those of a
  // run that begins.
  void open_corpora(const RowShare& share = {}, int64_t lanes = 0);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const DecoderConfig& model() const { return model_; }
  const Mixture& training() const { return training_->mixture(); }
  const Corpus& training_corpus(size_t part) const { return training_->corpus(part); }
  RunContent content() const;
  // Throws Error{kInvalid | kIo} where a corpus is not the text that was opened any more, as far as
  // it was read since the last call. Costs nothing of files that were not.
  void check_unchanged();

  // A corpus to validate on, and this rank's rows of it.
  struct ValidationSet {
    std::string name;  // of data.validation_set; empty: data.validation
    std::string path;
    DataFeed feed;
    ValidationBatches batches;
    bool is_all = true;     // known once the lanes are counted
    int64_t num_bytes = 0;  // of the text that is read; 0: not known yet

    ValidationSet(const DataSource& source, const std::string& key, const Tokenizer& tokenizer,
                  const Config& config, int64_t vocab_size, const RowShare& share,
                  std::shared_ptr<ObjectCache> cache, int64_t lanes)
        : name(source.name),
          path(source.path),
          feed(path, tokenizer, config, vocab_size, key, std::move(cache), lanes),
          batches(feed.mixture(), share, config.batch.global_sequences, config.validate.batches) {}
  };
  std::list<ValidationSet>& validation_sets() { return validation_sets_; }

 private:
  void name_ends_of_text(int64_t eos_id);
  void warn_of_special_text() const;
  void check_completions() const;
  void warn_of_unknown_keys() const;
  void warn_of_small_cache(int64_t num_lanes) const;

  const Config& config_;
  bool tells_;
  std::unique_ptr<Tokenizer> tokenizer_;
  DecoderConfig model_;
  std::optional<DataFeed> training_;
  std::list<ValidationSet> validation_sets_;
  std::set<const Corpus*> told_moved_;
};

// For tokenizing on this machine alone.
int num_readers(const Config& config);

}  // namespace skein
