// Simulates a pipelined step from the seconds of each chunk's forward and backward: each stage runs
// its list in order, starts a task when its input has arrived, and sends without waiting.
//
// Sharing    Where more tasks run than `tasks_at_once`, all of them slow down alike: stages that
//            share the cores of a machine.
// Transfers  Activations (or their gradient) leave when the task that made them ends, and take
//            `transfer_seconds`. Transfers of one stage in one direction are sent one after
//            another. Chunks of the same stage need no transfer.
// Update     starts on all stages together when the last task has ended, since the gradient norm
//            needs all gradients.
// Bubble     idle seconds of all stages before the update, divided by the seconds of their tasks;
//            (p - 1) / (m v) for equal tasks. Imbalance between stages counts as idle time too.
// Cost       O(tasks x stages) time, O(tasks) memory; the same input gives the same bits
// Errors     Error{kInvalid} where the lists deadlock or lack the source of a task;
//            Error{kInternal} where times and lists do not match
#pragma once

#include <limits>
#include <vector>

#include "skein/schedule/pipeline_tasks.h"

namespace skein {

struct ChunkSeconds {
  double forward = 0;
  double backward = 0;
  double forward_beside = 0;  // what a forward in a pair adds to the backward
};

struct StepTimes {
  std::vector<ChunkSeconds> chunks;  // in the order of the model
  double transfer_seconds = 0;
  double update_seconds = 0;
  double tasks_at_once = std::numeric_limits<double>::infinity();  // at full speed
};

struct TaskSpan {
  Task task;
  double ready = 0;  // when its input had arrived
  double start = 0;
  double end = 0;
};

struct StepTimeline {
  std::vector<std::vector<TaskSpan>> stages;  // in order of time
  double update_start = 0;
  double step_seconds = 0;
  double bubble_fraction = 0;
  // Idle time as a share of the time before the update, which is always below 1.
  double idle_share() const { return bubble_fraction / (1 + bubble_fraction); }
};

// `stages[s]`: the tasks of stage s, in order.
StepTimeline simulate(const std::vector<std::vector<Task>>& stages, const StepTimes& times);

// With the lists of the shape's schedule.
StepTimeline simulate(const PipelineShape& shape, const StepTimes& times);

}  // namespace skein
