#include "skein/train/loop/memory_saver.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "skein/base/machine/clock.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/train/start/consensus.h"

namespace skein {

MemorySaver::MemorySaver(const PreparedRun& run)
    : run_(run),
      on_processor_(!run.device->own_memory().has_value()),
      writer_({.place = *run.launch.replicas,
               .save = run.launch.start_id,
               .first_number = run.beginning.next_copy(),
               .rank = run.world.rank(),
               .num_ranks = run.world.size(),
               .copy =
                   [&device = *run.device](void* to, const void* from, size_t bytes) {
                     device.download(to, from, static_cast<int64_t>(bytes));
                   }},
              specs_of(run.programs.tensors)) {}

CopyReport MemorySaver::report() {
  CopyReport report{.step_us = std::round(step_seconds_ * 1e6)};
  try {
    report.is_whole = !failed_ && writer_.is_complete();
  } catch (const std::exception& error) {
    failed_ = true;
    log::warn("no more copies of the state are kept in memory: {}", error.what());
    report.is_whole = false;
  }
  const double beside = on_processor_ ? writer_.busy_seconds() : 0;
  // In microseconds, whose sums do not depend on their order: all ranks decide by the same ones.
  report.copy_us = std::round((writer_.stall_seconds() + beside) * 1e6);
  return report;
}

void MemorySaver::hear(const StepResult& result, double step_seconds) {
  step_seconds_ = step_seconds;
  whole_ = result.copied;
  if (!whole_ || !std::exchange(measures_, false)) return;
  const double share = result.copy_us / std::max(1.0, result.step_us);
  if (run_.config.checkpoint.memory_every_steps > 0 || !std::isfinite(share)) return;
  const bool is_settled = share_ >= 0;
  share_ = is_settled ? (1 - kNewest) * share_ + kNewest * share : share;
  every_steps_ = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share_ / kCopyShare)));
  if (is_settled || !run_.is_first()) return;
  const std::string when =
      every_steps_ == 1 ? "after every step" : fmt::format("every {} steps", every_steps_);
  log::info("the state is copied to memory {}: a copy costs {:.1f} % of a step", when,
            share_ * 100);
}

bool MemorySaver::due(int64_t step) const {
  if (!whole_) return false;
  const int64_t every = run_.config.checkpoint.memory_every_steps;
  return every > 0 ? step % every == 0 : step - last_ >= every_steps_;
}

void MemorySaver::save(TrainingState state, const Executor& executor) {
  last_ = state.step;
  whole_ = false;
  measures_ = cold_saves_ == 0;
  cold_saves_ = std::max(0, cold_saves_ - 1);
  if (failed_) return;
  try {
    writer_.begin(std::move(state), state_views(executor, run_.programs.tensors));
  } catch (const std::exception& error) {
    failed_ = true;
    log::warn("no more copies of the state are kept in memory: {}", error.what());
  }
}

bool MemorySaver::save_and_wait(TrainingState state, const Executor& executor) {
  if (!is_whole_everywhere()) return false;
  save(std::move(state), executor);
  return is_whole_everywhere();
}

bool MemorySaver::is_whole_everywhere() {
  const auto deadline = Clock::now() + kPatience;
  const heartbeat::Wait waits(std::chrono::duration<double>(kPatience).count());
  while (!report().is_whole && !failed_ && Clock::now() < deadline) {
    heartbeat::require_generation();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const int64_t lacks = failed_ || !report().is_whole ? 1 : 0;
  const std::vector<int64_t> of_all = values_of_all(run_.world, {&lacks, 1});
  return std::count(of_all.begin(), of_all.end(), 0) == std::ssize(of_all);
}

}  // namespace skein
