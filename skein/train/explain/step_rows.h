// The rows of steps, for showing them: those that the run in run.dir trained, as it was configured
// by then; those that it would go on with; or, where there is none, those of a new run.
//
// Errors  as RunPast; Error{kUsage | kNotFound | kInvalid} naming the key of the configuration
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/config/data_feed.h"
#include "skein/data/lanes/packer.h"
#include "skein/train/explain/recall_step.h"

namespace skein {

class StepRows {
 public:
  explicit StepRows(const Config& config);

  // The rows of a step; of `lane` alone where it is not below 0, then with their tokens only. The
  // steps of several calls rise. Throws Error{kUsage} for a lane that the step does not read.
  void read(int64_t step, int64_t lane = -1);

  // Of the newest step, until the next one is read.
  const Batch& batch() const { return *batch_; }
  const std::vector<RowSegment>& segments() const { return segments_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Mixture& mixture() const { return *mixture_; }
  const Corpus& corpus(size_t part) const;
  std::vector<std::string> sources() const;  // names; none of a single corpus

 private:
  void prepare(int64_t step);
  void read_all(int64_t first_row, bool begins);
  void read_lane(int64_t lane, int64_t first_row, int64_t sequences);

  Config config_;
  SkippedBatches skipped_;
  std::optional<RunPast> past_;
  int64_t newest_step_ = 0;  // of the run
  // What is read from: of a run, or of the configuration alone.
  RecalledStep recalled_;
  std::unique_ptr<Tokenizer> own_tokenizer_;
  std::unique_ptr<DataFeed> feed_;
  const Tokenizer* tokenizer_ = nullptr;
  const Mixture* mixture_ = nullptr;

  std::optional<Packer> packer_;
  int64_t packed_sequences_ = 0;  // by packer_
  std::optional<Batch> batch_;
  std::vector<RowSegment> segments_;
};

}  // namespace skein
