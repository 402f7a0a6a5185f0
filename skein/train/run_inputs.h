// What a run reads: its tokenizer, the model (whose vocabulary may come from the tokenizer), and
// the corpora.
//
// Errors  Error{kUsage | kNotFound | kInvalid} naming the key of the configuration and the path
#pragma once

#include <memory>

#include "skein/config/config.h"
#include "skein/config/data_feed.h"
#include "skein/config/run_identity.h"
#include "skein/data/loader.h"
#include "skein/model/decoder.h"

namespace skein {

class RunInputs {
 public:
  // Loads the tokenizer and the model. With `tells`, logs what an export will lack. `config` must
  // outlive this object.
  RunInputs(const Config& config, bool tells);
  // `lanes`: the range of lanes that this rank reads.
  void open_corpora(const LoaderOptions& lanes);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const DecoderConfig& model() const { return model_; }
  const LaneContext& training() const { return training_->context(); }
  const LaneContext& validation() const { return validation_->context(); }
  // Null where there is no validation corpus.
  ValidationBatches* validation_batches() const { return validation_batches_.get(); }
  RunContent content() const;

 private:
  const Config& config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  DecoderConfig model_;
  std::unique_ptr<DataFeed> training_;
  std::unique_ptr<DataFeed> validation_;
  std::unique_ptr<ValidationBatches> validation_batches_;
};

}  // namespace skein
