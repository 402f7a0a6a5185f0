// Everything that a run says: the progress line, metrics.jsonl, events.jsonl, TensorBoard, and
// spikes. The training loop tells it what happened; it decides where that goes.
#pragma once

#include <memory>
#include <string>

#include "skein/checkpoint/checkpoint_writer.h"
#include "skein/ir/program.h"
#include "skein/train/config.h"
#include "skein/train/events.h"
#include "skein/train/metrics.h"
#include "skein/train/progress.h"
#include "skein/train/spikes.h"
#include "skein/train/tensorboard.h"

namespace skein {

class RunLog {
 public:
  // Creates the run folder and writes config.toml.
  explicit RunLog(const Config& config);

  // `ceiling_flops`: this machine's measured matrix-product rate.
  void start(double flops_per_token, double ceiling_flops, int64_t num_parameters,
             const ArenaBytes& arenas, int64_t snapshot_bytes);
  void begin_from(const std::string& init_from);  // "": random weights
  // Spikes go on from what metrics.jsonl says of the steps up to `step`.
  void resume(int64_t step, const std::string& checkpoint);
  void damaged_checkpoint(const CheckpointInfo& info, const Error& why);

  // Fills the rates and the time of `metrics`, and writes it everywhere. `num_tokens`: processed.
  void step(StepMetrics metrics, double seconds, int64_t num_tokens);
  void validation(int64_t step, double loss, int64_t num_tokens, double seconds);
  void checkpoint_begin(int64_t step);
  void checkpoint_commit(const SavedCheckpoint& saved);
  void checkpoint_failed(int64_t step, const Error& why);
  void stop(int64_t step, const std::string& why);

 private:
  SpikeDetector::Verdict watch_spikes(const StepMetrics& metrics);
  void say(const std::string& line);

  Config config_;
  fs::path dir_;
  MetricsLog metrics_;
  EventLog events_;
  std::unique_ptr<TensorBoardWriter> tensorboard_;
  Progress progress_;
  SpikeDetector spikes_;
  double flops_per_token_ = 0;
  double ceiling_flops_ = 0;
  int64_t memory_bytes_ = 0;
};

}  // namespace skein
