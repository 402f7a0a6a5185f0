#include "skein/plan/whole_run.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "skein/base/text/units.h"
#include "skein/config/batches.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

// The number of saves in steps 1 .. run.steps: at each interval, and at the end.
int64_t num_saves(const Config& config) {
  const int64_t every = config.checkpoint.every_steps;
  return every > 0 ? ceil_div(config.run.steps, every) : 1;
}

// How many of them are multiples of permanent_every_steps.
int64_t num_permanent(const Config& config) {
  const int64_t every = config.checkpoint.every_steps,
                permanent = config.checkpoint.permanent_every_steps;
  const int64_t steps = config.run.steps;
  if (permanent == 0) return 0;
  const int64_t at_the_end = steps % permanent == 0 ? 1 : 0;
  if (every == 0) return at_the_end;
  const int64_t both = std::lcm(every, permanent);
  return steps / both + (steps % both == 0 ? 0 : at_the_end);
}

}  // namespace

double expected_param_norm(const Config& config, const DecoderConfig& model) {
  const InitializeOptions options = {.std = model.initializer_range,
                                     .scaled = config.model.scaled_init};
  double squares = 0;
  for (const ParameterSpec& spec : parameter_specs(model)) {
    squares += static_cast<double>(spec.shape.num_elements()) *
               expected_square(spec, model.num_hidden_layers, options);
  }
  return std::sqrt(squares);
}

// An upper bound: the newest ones may be permanent as well.
int64_t checkpoints_at_once(const Config& config) {
  const int64_t saves = num_saves(config), keep = config.checkpoint.keep;
  return keep == 0 ? saves : std::min(saves, keep + 1 + num_permanent(config));
}

RunTotals run_totals(const Config& config, const DecoderConfig& model, double step_seconds,
                     int64_t checkpoint_bytes) {
  RunTotals totals;
  totals.steps = config.run.steps;
  totals.tokens_per_step = config.batch.global_sequences * config.data.sequence_length;
  totals.tokens = batch_ramp(config).rows(1, totals.steps) * config.data.sequence_length;
  // A step of a smaller batch takes as much less.
  totals.seconds = step_seconds * (static_cast<double>(totals.tokens) /
                                   static_cast<double>(totals.tokens_per_step));
  totals.checkpoint_bytes = checkpoint_bytes;
  totals.num_permanent = num_permanent(config);
  totals.num_checkpoints = checkpoints_at_once(config);
  totals.disk_bytes = totals.num_checkpoints * checkpoint_bytes;
  if (config.model.init_from.empty()) {
    totals.initial_param_norm = expected_param_norm(config, model);
  }
  return totals;
}

}  // namespace skein
