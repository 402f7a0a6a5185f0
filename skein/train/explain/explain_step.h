// Which documents a step of a run trained on, and what each of them did to it: the work behind
// `skein why`.
//
// Weights  of the newest good checkpoint before the step. With `exact` the steps in between are
//          trained again, so that they are those that the step began with (Replica)
// Changed  settings of the run are taken as they were when the step was trained (run_past.h)
// Errors   Error{kUsage} where the configuration is not the run's, or the step came before anything
//          that can be read; as RunPast; kNoSpace where the model does not fit this device
// Cost     tokenizing from the checkpoint to the step, then document_effects; with `exact` a step
//          of the run, on this device alone, for each in between
#pragma once

#include <string>
#include <vector>

#include "skein/config/config.h"
#include "skein/train/explain/document_effects.h"

namespace skein {

struct StepQuestion {
  int64_t step = 0;   // of the run as it went on, from 1; or 0 and
  int64_t batch = 0;  // a batch by its number, which also names one that was skipped
  bool exact = false;
};

struct StepAnswer {
  int64_t step = 0;  // where a batch was asked for that is skipped: the step that comes next
  int64_t batch = 0;
  bool is_skipped = false;
  int64_t weights_step = 0;               // the weights are those after this step
  std::string weights_from;               // path of the checkpoint; "": initial weights
  bool is_replayed = false;               // trained again from there up to `weights_step`
  bool is_exact = false;                  // the weights are those with which the step began
  bool ended_run = false;                 // by a loss or a norm that was not finite
  double loss = 0;                        // of the whole batch, by these weights
  std::vector<std::string> corpora;       // that the step read; documents count in them
  std::vector<DocumentEffect> documents;  // what stands out most comes first
};

StepAnswer explain_step(const Config& config, const StepQuestion& question);

}  // namespace skein
