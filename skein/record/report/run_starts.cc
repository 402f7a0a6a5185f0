#include "skein/record/report/run_starts.h"

#include <algorithm>
#include <optional>

#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"

namespace skein {
namespace {

struct StartEvent {
  RecordedStart start;
  std::optional<size_t> parent;  // the start that trained the step from which it goes on
};

struct Commit {
  int64_t step;
  std::string folder;
  size_t by;  // the start
};

// A run may have been moved between two starts, so only the name of the folder counts.
std::string folder_name(const Json& event, const char* key) {
  return fs::path(text_or(event, key, "")).filename().string();
}

// Who saved what the start goes on from. Copies in memory are of the start before; so is a
// checkpoint whose process was killed before it told of it.
std::optional<size_t> parent_of(const Json& event, const std::vector<StartEvent>& starts,
                                const std::vector<Commit>& commits) {
  const int64_t step = integer_or(event, "step", 0);
  if (step == 0) return std::nullopt;
  const std::string folder = folder_name(event, "from");
  const auto saved = std::find_if(commits.rbegin(), commits.rend(), [&](const Commit& commit) {
    return commit.step == step && commit.folder == folder;
  });
  if (saved != commits.rend()) return saved->by;
  for (size_t i = starts.size(); i > 0; --i) {
    if (starts[i - 1].start.step <= step) return i - 1;
  }
  return std::nullopt;
}

}  // namespace

std::vector<RecordedChange> recorded_changes(const Json& event) {
  std::vector<RecordedChange> changes;
  const auto found = event.find("changed");
  if (found == event.end() || !found->is_array()) return changes;
  for (const Json& change : *found) {
    if (!change.is_object()) continue;
    changes.push_back(
        {text_or(change, "key", ""), text_or(change, "before", ""), text_or(change, "after", "")});
  }
  return changes;
}

std::vector<RecordedStart> recorded_starts(const fs::path& run) {
  std::vector<StartEvent> starts;
  std::vector<Commit> commits;
  for_each_json_line(run / "events.jsonl", [&](const Json& event) {
    const std::string kind = text_or(event, "event", "");
    const int64_t step = integer_or(event, "step", 0);
    if (kind == "start") {
      const auto parent = parent_of(event, starts, commits);
      starts.push_back({{step, recorded_changes(event), text_or(event, "from", ""), {}}, parent});
    } else if (kind == "checkpoint_commit" && !starts.empty()) {
      starts.back().start.saved.push_back(step);
      commits.push_back({step, folder_name(event, "path"), starts.size() - 1});
    }
  });
  std::vector<RecordedStart> line;
  if (starts.empty()) return line;
  for (std::optional<size_t> at = starts.size() - 1; at; at = starts[*at].parent) {
    line.push_back(std::move(starts[*at].start));
  }
  std::reverse(line.begin(), line.end());
  return line;
}

size_t start_of_step(const std::vector<RecordedStart>& starts, int64_t step) {
  size_t last = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i].step < step) last = i;
  }
  return last;
}

}  // namespace skein
