// What events.jsonl tells of a run besides the report (report.h): how it was started, its memory,
// and what a reader of its curves wants to see beside them.
//
// Format   docs/events_format.md
// Limits   the newest 500 events; `num_left_out` counts the others
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct RunEvents {
  struct Event {
    double time = 0;
    std::optional<int64_t> step;
    std::string name;  // "start", for every start but the first; "roll_back", "alarm", …
    std::string text;  // its reason, or what else it has to say
  };
  std::vector<Event> list;
  int64_t num_left_out = 0;
  // Of the newest start: "version", "parameters", "ranks", "arithmetic".
  std::vector<std::pair<std::string, std::string>> start;
  std::vector<std::pair<std::string, int64_t>> allocated_bytes;  // by arena, on rank 0
  std::optional<int64_t> peak_resident_bytes;                    // of the newest stop
};

RunEvents read_run_events(const fs::path& run_dir);

}  // namespace skein
