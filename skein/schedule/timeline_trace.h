// Writes a simulated step as a trace for Perfetto; see skein/base/files/trace_file.h.
//
// Format   Process 0 is the pipeline, with a thread per stage: complete events ("X") `F3` and `B3`
//          for forward and backward of micro-batch 3, with chunk, micro_batch, slot and waited_us
//          (idle time before the task, waiting for its input) in `args`; `update` at the end. Flow
//          events ("s", "f") connect a task to the one on another stage that reads its result.
//          Counters ("C") give each stage's micro-batches in flight. Times are in microseconds
//          since the step's start.
#pragma once

#include <filesystem>

#include "skein/schedule/simulate.h"

namespace skein {

// Replaces an existing file.
void write_timeline(const StepTimeline& timeline, const std::filesystem::path& path);

}  // namespace skein
