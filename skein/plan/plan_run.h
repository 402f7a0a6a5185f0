// What the whole run takes, beside a step: tokens, time, disk; and what its first metrics should
// say.
//
// Formula  seconds      steps x step_seconds: saving, validating and waiting for data are not in it
//          checkpoint   weights, masters and moments, each stored once over all ranks; the text of
//                       headers and manifest comes to it
//          disk         the most that lies there at once: `keep` newest, the one being written, and
//                       the permanent ones
//          norm         sqrt(sum of elements x E[w^2]): 1 for norms, 0 for biases, std^2 for what
//                       is drawn (skein/weights/initialize.h). With n drawn elements, a real one
//                       differs by about 1 / sqrt(2 n) of it, and the first step's update comes on
//                       top
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
  int64_t num_permanent = 0;    // of them, those that are never removed
  int64_t disk_bytes = 0;
  double initial_param_norm = 0;  // 0: the weights come from model.init_from
};

RunTotals run_totals(const Config& config, const DecoderConfig& model, double step_seconds,
                     int64_t checkpoint_bytes);

double expected_param_norm(const Config& config, const DecoderConfig& model);

}  // namespace skein
