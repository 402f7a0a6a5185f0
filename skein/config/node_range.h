// The machines of a run, launch.nodes: "N" or "MIN:MAX"; and the processes of its workers on each
// (launch.workers_per_process).
//
// Several  a process has several workers where their device runs compiled programs (device.kind =
//          "pjrt"): its workers are threads, each with a device, and collectives between them are
//          part of the programs. Elsewhere each has a process of its own
// Not set  with a pipeline the workers of a tensor and context group, else all of the machine
// Errors   of workers_per_process Error{kUsage}: a number that does not divide launch.workers, or a
//          device that does not compile
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "skein/config/config.h"

namespace skein {

// A positive whole number without sign, blanks and trailing characters.
std::optional<int64_t> parse_count(std::string_view text);

struct NodeRange {
  int64_t least = 1, most = 1;
};

// nullopt: the text is neither.
std::optional<NodeRange> parse_node_range(std::string_view nodes);

int64_t workers_per_process(const Config& config);
int64_t worker_processes(const Config& config);  // of this machine

}  // namespace skein
