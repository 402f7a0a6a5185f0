// The starts that a run's newest one follows from, as events.jsonl tells them: which settings
// changed at which step.
//
// Order    oldest first. A start that went back, or whose steps were never saved, takes the place
//          of those whose steps are lost by it
// Format   docs/events_format.md: `start` and `checkpoint_commit`
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"

namespace skein {

struct RecordedChange {
  std::string key;  // "data.source"
  std::string before, after;
};

// Of a `start` event.
std::vector<RecordedChange> recorded_changes(const Json& event);

struct RecordedStart {
  int64_t step = 0;                     // it trained the steps after this one
  std::vector<RecordedChange> changes;  // from the start that trained that step
  std::string from;                     // the folder of its weights; "": initial ones
  std::vector<int64_t> saved;           // the steps of its checkpoints
};

// Of the run in the folder `run`; none where it never began, or its events are gone.
std::vector<RecordedStart> recorded_starts(const fs::path& run);

// The start that trained `step`: the last that went on from a step before it. `starts` has one.
size_t start_of_step(const std::vector<RecordedStart>& starts, int64_t step);

}  // namespace skein
