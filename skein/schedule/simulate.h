// When every task of a pipelined step runs, from the seconds of each chunk's forward and backward:
// each stage runs its list in order, starts a task when what it reads has arrived, and sends
// without waiting.
//
// Transfers  A boundary tensor (or its gradient) leaves when the task that made it ends and takes
//            `transfer_seconds`. Of one stage, those of one direction leave one after another.
//            Nothing travels between chunks of one stage.
// Update     starts on all stages together, when the last task has ended: the gradient norm needs
//            them all.
// Bubble     idle seconds of all stages up to the update, divided by the seconds of their tasks;
//            for equal tasks (p - 1) / (m v). Unequal stages count as idle too.
// Cost       O(tasks) time and memory; the same input gives the same bits
// Errors     Error{kInvalid} where lists wait for each other for ever, or miss a task's source;
//            Error{kInternal} where times and lists do not fit together
#pragma once

#include <vector>

#include "skein/schedule/pipeline.h"

namespace skein {

struct ChunkSeconds {
  double forward = 0;
  double backward = 0;
};

struct StepTimes {
  std::vector<ChunkSeconds> chunks;  // in the order of the model
  double transfer_seconds = 0;
  double update_seconds = 0;
};

struct TaskSpan {
  Task task;
  double ready = 0;  // when what it reads had arrived
  double start = 0;
  double end = 0;
};

struct StepTimeline {
  std::vector<std::vector<TaskSpan>> stages;  // in order of time
  double update_start = 0;
  double step_seconds = 0;
  double bubble_fraction = 0;
  // The same as a share of the time up to the update: below 1 whatever the schedule.
  double idle_share() const { return bubble_fraction / (1 + bubble_fraction); }
};

// `stages[s]` is the list of stage s.
StepTimeline simulate(const std::vector<std::vector<Task>>& stages, const StepTimes& times);

// The lists of the shape's schedule.
StepTimeline simulate(const PipelineShape& shape, const StepTimes& times);

}  // namespace skein
