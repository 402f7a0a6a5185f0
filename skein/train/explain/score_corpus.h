// How well a model predicts a text: the work behind `skein score --corpus`.
//
// Formula  loss           mean natural-log cross-entropy per token with a label
//          bits_per_byte  loss * labels / ln 2 / bytes of text
// Rows     a checkpoint: as its run validates (seed, lanes, rows, document mask, precision), so
//          that the loss is that of the run's validation on this text, to the bit where neither
//          tensor nor context ranks add in another order and validate.batches does not end it
//          before.
//          A Hugging Face folder: one lane, the document mask, the precision of its weights
// Memory   the weights and what a forward pass needs. Error{kNoSpace} where they do not fit
// Errors   Error{kUsage | kNotFound | kInvalid} naming the option or the file
#pragma once

#include <cstdint>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

struct ScoreQuestion {
  fs::path model;               // a Hugging Face folder, a checkpoint or a run
  fs::path corpus;              // as data.validation
  int64_t sequence_length = 0;  // 0: the run's; of a Hugging Face model 2048, or its most positions
  std::string device = "auto";  // of a run that names cpu: that; else a GPU where there is one
  int threads = 0;              // 0: all cores
};

struct CorpusScore {
  std::string model;  // what was taken: of a run its newest checkpoint
  double loss = 0;
  int64_t num_labels = 0;
  int64_t num_tokens = 0;  // with those that have no label: the first of each document
  int64_t num_bytes = 0;   // of text
  int64_t num_documents = 0;
  int64_t num_batches = 0;
  int64_t sequence_length = 0;
  bool document_mask = true;
  std::string precision;  // "fp32" or "bf16", in which it was computed
  double seconds = 0;

  double perplexity() const;
  double bits_per_byte() const;
};

CorpusScore score_corpus(const ScoreQuestion& question);

}  // namespace skein
