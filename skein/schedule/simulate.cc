#include "skein/schedule/simulate.h"

#include <algorithm>
#include <limits>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kNoTask = -1;

class PipelineSimulation {
 public:
  PipelineSimulation(const std::vector<std::vector<Task>>& lists, const StepTimes& times)
      : lists_(lists),
        times_(times),
        num_chunks_(static_cast<int64_t>(times.chunks.size())),
        stages_(lists.size()),
        next_event_(lists.size(), kNever),
        link_free_at_(2 * lists.size(), 0) {
    for (const auto& list : lists) {
      for (const Task& task : list) {
        check(task);
        num_micro_batches_ = std::max(num_micro_batches_, task.micro_batch + 1);
      }
    }
    const auto num_pairs = static_cast<size_t>(num_chunks_ * num_micro_batches_);
    forward_arrival_.assign(num_pairs, kNever);
    backward_arrival_.assign(num_pairs, kNever);
    stage_of_.assign(times.chunks.size(), kNoTask);
    for (size_t stage = 0; stage < lists.size(); ++stage) {
      for (const Task& task : lists[stage])
        stage_of_[static_cast<size_t>(task.chunk)] = static_cast<int64_t>(stage);
    }
    timeline_.stages.resize(lists.size());
  }

  StepTimeline run() {
    for (size_t stage = 0; stage < lists_.size(); ++stage) wait(stage);
    while (true) {
      double next = kNever;
      for (const double event : next_event_) next = std::min(next, event);
      if (next == kNever) break;
      now_ = next;
      for (size_t stage = 0; stage < lists_.size(); ++stage) {
        if (next_event_[stage] <= now_ && stages_[stage].running) end_task(stage);
      }
      for (size_t stage = 0; stage < lists_.size(); ++stage) {
        if (next_event_[stage] <= now_ && !stages_[stage].running) start_task(stage);
      }
      share();
    }
    check_done();
    finish();
    return std::move(timeline_);
  }

 private:
  struct Stage {
    size_t position = 0;  // of the task that runs, or of the next one
    bool running = false;
  };

  void check(const Task& task) const {
    if (task.chunk < 0 || task.chunk >= num_chunks_ || task.micro_batch < 0) {
      fail(ErrorCode::kInternal,
           "simulate: chunk {}, micro-batch {}: times are given for {} chunks", task.chunk,
           task.micro_batch, num_chunks_);
    }
  }

  size_t pair(int64_t chunk, int64_t micro_batch) const {
    return static_cast<size_t>(chunk * num_micro_batches_ + micro_batch);
  }

  // When the task's input arrives; kNever: not sent yet.
  double ready_at(const Task& task) const {
    const bool forward = task.kind == TaskKind::kForward;
    if (forward && task.chunk == 0) return 0;
    return (forward ? forward_arrival_ : backward_arrival_)[pair(task.chunk, task.micro_batch)];
  }

  double seconds_of(const Task& task) const {
    const ChunkSeconds& seconds = times_.chunks[static_cast<size_t>(task.chunk)];
    if (task.beside) return seconds.forward_beside;
    return task.kind == TaskKind::kForward ? seconds.forward : seconds.backward;
  }

  // The stage has no task under way: its next event is the start of the next one.
  void wait(size_t stage) {
    const size_t position = stages_[stage].position;
    next_event_[stage] = position == lists_[stage].size()
                             ? kNever
                             : std::max(now_, ready_at(lists_[stage][position]));
  }

  void start_task(size_t stage) {
    const Task& task = lists_[stage][stages_[stage].position];
    stages_[stage].running = true;
    ++running_;
    next_event_[stage] = now_ + seconds_of(task) / rate_;
    timeline_.stages[stage].push_back({task, ready_at(task), now_, now_});
  }

  void end_task(size_t stage) {
    const Task& task = lists_[stage][stages_[stage].position++];
    stages_[stage].running = false;
    --running_;
    timeline_.stages[stage].back().end = now_;
    const bool forward = task.kind == TaskKind::kForward;
    if (forward && task.chunk == num_chunks_ - 1) {
      // The last chunk computes the loss itself, so its backward waits for no transfer.
      backward_arrival_[pair(task.chunk, task.micro_batch)] = now_;
    } else if (forward) {
      deliver(stage, task.chunk + 1, task.micro_batch, forward);
    } else if (task.chunk > 0) {
      deliver(stage, task.chunk - 1, task.micro_batch, forward);
    }
    wait(stage);
  }

  void deliver(size_t from, int64_t chunk, int64_t micro_batch, bool forward) {
    const int64_t to = stage_of_[static_cast<size_t>(chunk)];
    double arrives = now_;
    if (to != static_cast<int64_t>(from)) {
      double& link = link_free_at_[2 * from + (forward ? 0 : 1)];
      link = std::max(link, now_) + times_.transfer_seconds;
      arrives = link;
    }
    (forward ? forward_arrival_ : backward_arrival_)[pair(chunk, micro_batch)] = arrives;
    if (to != kNoTask && !stages_[static_cast<size_t>(to)].running) wait(static_cast<size_t>(to));
  }

  // What is left of the tasks that run takes longer or shorter where their number has changed.
  void share() {
    const double rate = std::min(1.0, times_.tasks_at_once / std::max(1.0, double(running_)));
    if (rate == rate_) return;
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      double& end = next_event_[stage];
      if (stages_[stage].running) end = now_ + (end - now_) * rate_ / rate;
    }
    rate_ = rate;
  }

  void check_done() const {
    for (size_t stage = 0; stage < lists_.size(); ++stage) {
      const size_t position = stages_[stage].position;
      if (position == lists_[stage].size()) continue;
      const Task& task = lists_[stage][position];
      fail(
          ErrorCode::kInvalid,
          "simulate: the schedule stops: stage {} waits for ever at its task {}, the {} of chunk {}"
          ", micro-batch {}",
          stage, position, task.kind == TaskKind::kForward ? "forward" : "backward", task.chunk,
          task.micro_batch);
    }
  }

  void finish() {
    double busy = 0;
    for (const auto& spans : timeline_.stages) {
      for (const TaskSpan& span : spans) {
        busy += span.end - span.start;
        timeline_.update_start = std::max(timeline_.update_start, span.end);
      }
    }
    timeline_.step_seconds = timeline_.update_start + times_.update_seconds;
    const double all = timeline_.update_start * static_cast<double>(lists_.size());
    if (busy > 0) timeline_.bubble_fraction = (all - busy) / busy;
  }

  const std::vector<std::vector<Task>>& lists_;
  const StepTimes& times_;
  const int64_t num_chunks_;
  int64_t num_micro_batches_ = 0;
  std::vector<int64_t> stage_of_;  // by chunk
  std::vector<double> forward_arrival_, backward_arrival_;
  std::vector<Stage> stages_;
  std::vector<double> next_event_;  // by stage: when its task ends, or its next one can start
  std::vector<double> link_free_at_;
  double now_ = 0;
  double rate_ = 1;  // of a task that runs; 1: as if it were alone
  int64_t running_ = 0;
  StepTimeline timeline_;
};

}  // namespace

StepTimeline simulate(const std::vector<std::vector<Task>>& stages, const StepTimes& times) {
  return PipelineSimulation(stages, times).run();
}

StepTimeline simulate(const PipelineShape& shape, const StepTimes& times) {
  std::vector<std::vector<Task>> lists;
  for (int64_t stage = 0; stage < shape.num_stages; ++stage)
    lists.push_back(stage_tasks(shape, stage));
  return simulate(lists, times);
}

}  // namespace skein
