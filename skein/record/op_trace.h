// The ops of a step as they ran, as a trace for Perfetto; see skein/base/trace_file.h.
//
// Format   Process 0 is the rank and has one thread, the device's queue: a complete event ("X") an
//          op, named after it, of the program's category, with scope, shapes, slot, GFLOP/s and
//          GB/s (both of the op's cost) in `args`. Times are in microseconds since the first op
#pragma once

#include <filesystem>
#include <vector>

#include "skein/runtime/executor.h"

namespace skein {

// Replaces the file.
void write_op_trace(const std::vector<OpSpan>& spans, int64_t rank,
                    const std::filesystem::path& path);

}  // namespace skein
