// What the whole run takes: tokens, time and disk; and the norm of the weights that its first steps
// should report.
//
// Formula  seconds      steps x step_seconds, without saving, validating and waiting for data
//          checkpoint   weights, masters and moments, each stored once over all ranks; headers and
//                       the manifest come on top
//          disk         the most at any time: the `keep` newest checkpoints, the one being written,
//                       and the permanent ones
//          norm         sqrt(sum of elements x E[w^2]), where E[w^2] is 1 for norms, 0 for biases,
//                       std^2 for drawn weights (skein/weights/initialize.h). With n drawn elements
//                       the actual norm differs by about 1 / sqrt(2 n) of it, and by the first
//                       step's update
#pragma once

#include <cstdint>

#include "skein/config/config.h"
#include "skein/model/decoder.h"

namespace skein {

struct RunTotals {
  int64_t steps = 0;
  int64_t tokens_per_step = 0;
  int64_t tokens = 0;
  double seconds = 0;
  int64_t checkpoint_bytes = 0;
  int64_t num_checkpoints = 0;  // on disk at once, at most
  int64_t num_permanent = 0;    // of these, those that are never removed
  int64_t disk_bytes = 0;
  double initial_param_norm = 0;  // 0: the weights come from model.init_from
};

RunTotals run_totals(const Config& config, const DecoderConfig& model, double step_seconds,
                     int64_t checkpoint_bytes);

// RunTotals::num_checkpoints.
int64_t checkpoints_at_once(const Config& config);

double expected_param_norm(const Config& config, const DecoderConfig& model);

}  // namespace skein
