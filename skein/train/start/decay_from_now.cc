#include "skein/train/start/decay_from_now.h"

#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/newest_good.h"
#include "skein/checkpoint/find/reader.h"

namespace skein {
namespace {

std::unique_ptr<CheckpointReader> newest_checkpoint(const Config& config) {
  const Lineage lineage = lineage_patiently(checkpoint_dir(config));
  if (lineage.conflict) throw *lineage.conflict;
  for (const CheckpointInfo& info : lineage.checkpoints) {
    auto reader = try_run([&] { return std::make_unique<CheckpointReader>(info.path); });
    if (reader.ok()) return std::move(reader).value();
    if (is_read_error(reader.error())) throw reader.error();
  }
  fail(ErrorCode::kUsage,
       "--decay-from-now: {} holds no checkpoint: expected a run that has been saved; of a new run "
       "optimizer.constant_steps and decay_steps say where the decay begins",
       config.run.dir);
}

// The schedule that the checkpoint was trained with.
OptimizerConfig schedule_of(const CheckpointReader& checkpoint, const Config& config) {
  const Json& saved = checkpoint.state().configuration;
  const auto text = saved.is_object() ? saved.find("config") : saved.end();
  if (text == saved.end() || !text->is_string()) return config.optimizer;
  return parse_config(text->get_ref<const std::string&>(),
                      checkpoint.path().string() + "/manifest.json")
      .optimizer;
}

}  // namespace

std::vector<std::string> decay_from_now(Config& config, int64_t steps) {
  const auto checkpoint = newest_checkpoint(config);
  const int64_t now = checkpoint->state().step, left = config.run.steps - now;
  OptimizerConfig schedule = schedule_of(*checkpoint, config);
  const int64_t peak_ends = schedule.warmup_steps + schedule.constant_steps;
  const bool is_constant = schedule.schedule == "constant";
  if (now < schedule.warmup_steps) {
    fail(
        ErrorCode::kUsage,
        "--decay-from-now: step {} is in the warm-up, which ends at step {}: a decay begins at the "
        "peak; expected a later checkpoint",
        now, schedule.warmup_steps);
  }
  if (!is_constant && now > peak_ends) {  // the same command again, or another decay
    const int64_t end = peak_ends + schedule.decay_steps;
    if (steps > 0 ? steps != schedule.decay_steps : end != config.run.steps) {
      fail(
          ErrorCode::kUsage,
          "--decay-from-now: the learning rate has been decaying since step {}, over {} steps, and "
          "a schedule has one decay: expected no other, or a new run from this checkpoint with "
          "model.init_from",
          peak_ends, schedule.decay_steps);
    }
    log::info("the learning rate has been decaying since step {}: it goes on to step {}", peak_ends,
              end);
  } else {
    if (left < 1) {
      fail(ErrorCode::kUsage,
           "--decay-from-now: the run has had its {} steps: set run.steps higher, by the steps of "
           "the decay",
           config.run.steps);
    }
    if (steps > left) {
      fail(ErrorCode::kUsage,
           "--decay-from-now {}: of run.steps = {} there are {} left after step {}: expected at "
           "most {}, or run.steps = {}",
           steps, config.run.steps, left, now, left, now + steps);
    }
    if (is_constant) schedule.schedule = "linear";
    schedule.constant_steps = now - schedule.warmup_steps;
    schedule.decay_steps = steps > 0 ? steps : left;
  }
  config.optimizer.schedule = schedule.schedule;
  config.optimizer.warmup_steps = schedule.warmup_steps;
  config.optimizer.constant_steps = schedule.constant_steps;
  config.optimizer.decay_steps = schedule.decay_steps;
  config.origin.warmup_given = config.origin.decay_given = true;
  check_config(config, "--decay-from-now");
  return {fmt::format("optimizer.schedule={}", schedule.schedule),
          fmt::format("optimizer.warmup_steps={}", schedule.warmup_steps),
          fmt::format("optimizer.constant_steps={}", schedule.constant_steps),
          fmt::format("optimizer.decay_steps={}", schedule.decay_steps)};
}

}  // namespace skein
