// The measured ops of a step as a trace for Perfetto; see skein/base/files/trace_file.h.
//
// Format   Process 0 is the rank, with one thread for the device's queue. Each op is a complete
//          event ("X") with the op's name, the program's category, and in `args` scope, shapes,
//          slot, GFLOP/s and GB/s (both from the op's cost), in a pair of micro-batches also `of`
//          for what the forward does. What an op starts and another one ends, a collective or a
//          copy to the host, is an event of its own from the first to the last ("b", "e"): beside
//          what it travels. Times are in microseconds since the first op
#pragma once

#include <filesystem>
#include <vector>

#include "skein/runtime/executor.h"

namespace skein {

// Writes the trace, replacing the file.
void write_op_trace(const std::vector<OpSpan>& spans, int64_t rank,
                    const std::filesystem::path& path);

}  // namespace skein
