#include "skein/schedule/simulate.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr double kUnknown = -1;  // no time is negative
constexpr int64_t kNoTask = -1;

class Simulation {
 public:
  Simulation(const std::vector<std::vector<Task>>& lists, const StepTimes& times)
      : lists_(lists),
        times_(times),
        num_chunks_(static_cast<int64_t>(times.chunks.size())),
        position_(lists.size(), 0),
        free_at_(lists.size(), 0),
        link_free_at_(2 * lists.size(), 0),
        queued_(lists.size(), true) {
    for (const auto& list : lists) {
      for (const Task& task : list) {
        check(task);
        num_micro_batches_ = std::max(num_micro_batches_, task.micro_batch + 1);
      }
    }
    const auto num_pairs = static_cast<size_t>(num_chunks_ * num_micro_batches_);
    forward_arrival_.assign(num_pairs, kUnknown);
    backward_arrival_.assign(num_pairs, kUnknown);
    stage_of_.assign(times.chunks.size(), kNoTask);
    for (size_t stage = 0; stage < lists.size(); ++stage) {
      for (const Task& task : lists[stage])
        stage_of_[static_cast<size_t>(task.chunk)] = static_cast<int64_t>(stage);
      queue_.push_back(stage);
    }
    timeline_.stages.resize(lists.size());
  }

  StepTimeline run() {
    while (!queue_.empty()) {
      const size_t stage = queue_.front();
      queue_.pop_front();
      queued_[stage] = false;
      while (position_[stage] < lists_[stage].size() && advance(stage)) {
      }
    }
    check_done();
    finish();
    return std::move(timeline_);
  }

 private:
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

  // When the task's input arrives; kUnknown: not sent yet.
  double ready_at(const Task& task) const {
    const bool forward = task.kind == TaskKind::kForward;
    if (forward && task.chunk == 0) return 0;
    return (forward ? forward_arrival_ : backward_arrival_)[pair(task.chunk, task.micro_batch)];
  }

  // Runs the stage's next task if its input has been sent.
  bool advance(size_t stage) {
    const Task& task = lists_[stage][position_[stage]];
    const double ready = ready_at(task);
    if (ready == kUnknown) return false;
    const bool forward = task.kind == TaskKind::kForward;
    const ChunkSeconds& seconds = times_.chunks[static_cast<size_t>(task.chunk)];
    const double start = std::max(ready, free_at_[stage]);
    const double end = start + (task.beside ? seconds.forward_beside
                                : forward   ? seconds.forward
                                            : seconds.backward);
    free_at_[stage] = end;
    ++position_[stage];
    timeline_.stages[stage].push_back({task, ready, start, end});
    if (forward && task.chunk == num_chunks_ - 1) {
      // The last chunk computes the loss itself, so its backward waits for no transfer.
      backward_arrival_[pair(task.chunk, task.micro_batch)] = end;
    } else if (forward) {
      deliver(stage, task.chunk + 1, task.micro_batch, end, forward);
    } else if (task.chunk > 0) {
      deliver(stage, task.chunk - 1, task.micro_batch, end, forward);
    }
    return true;
  }

  void deliver(size_t from, int64_t chunk, int64_t micro_batch, double leaves, bool forward) {
    const int64_t to = stage_of_[static_cast<size_t>(chunk)];
    double arrives = leaves;
    if (to != static_cast<int64_t>(from)) {
      double& link = link_free_at_[2 * from + (forward ? 0 : 1)];
      link = std::max(link, leaves) + times_.transfer_seconds;
      arrives = link;
    }
    (forward ? forward_arrival_ : backward_arrival_)[pair(chunk, micro_batch)] = arrives;
    if (to == kNoTask || queued_[static_cast<size_t>(to)]) return;
    queued_[static_cast<size_t>(to)] = true;
    queue_.push_back(static_cast<size_t>(to));
  }

  void check_done() const {
    for (size_t stage = 0; stage < lists_.size(); ++stage) {
      if (position_[stage] == lists_[stage].size()) continue;
      const Task& task = lists_[stage][position_[stage]];
      fail(
          ErrorCode::kInvalid,
          "simulate: the schedule stops: stage {} waits for ever at its task {}, the {} of chunk {}"
          ", micro-batch {}",
          stage, position_[stage], task.kind == TaskKind::kForward ? "forward" : "backward",
          task.chunk, task.micro_batch);
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
  std::vector<size_t> position_;  // by stage
  std::vector<double> free_at_;
  std::vector<double> link_free_at_;
  std::vector<bool> queued_;
  std::deque<size_t> queue_;  // stages whose next task may be ready
  StepTimeline timeline_;
};

}  // namespace

StepTimeline simulate(const std::vector<std::vector<Task>>& stages, const StepTimes& times) {
  return Simulation(stages, times).run();
}

StepTimeline simulate(const PipelineShape& shape, const StepTimes& times) {
  std::vector<std::vector<Task>> lists;
  for (int64_t stage = 0; stage < shape.num_stages; ++stage)
    lists.push_back(stage_tasks(shape, stage));
  return simulate(lists, times);
}

}  // namespace skein
