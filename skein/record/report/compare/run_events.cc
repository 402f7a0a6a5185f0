#include "skein/record/report/compare/run_events.h"

#include <fmt/format.h>

#include <set>

#include "skein/base/text/json_text.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"

namespace skein {
namespace {

constexpr size_t kMostEvents = 500;

// Those of a failure are the report's, which takes several events of one failure together.
const std::set<std::string> kShown = {
    "alarm",     "checkpoint_skip", "epoch",     "generation", "host_joined", "host_lost",
    "roll_back", "start",           "straggler", "stop",       "wrong_bits",
};

std::string text_of(const Json& event, const std::string& name) {
  if (name == "start") {
    return fmt::format("start {}, after step {}", integer_or(event, "number", 0),
                       integer_or(event, "step", 0));
  }
  if (name == "roll_back") {
    return fmt::format("back to step {}: {}", integer_or(event, "to_step", 0),
                       text_or(event, "reason", ""));
  }
  if (name == "epoch") return fmt::format("{} read again", text_or(event, "source", "the corpus"));
  if (name == "host_lost" || name == "host_joined") {
    return text_or(event, "machine", "?") + " " + text_or(event, "reason", "");
  }
  if (name == "straggler") {
    return fmt::format("rank {} of {}: {:.0f} ms, median {:.0f} ms", integer_or(event, "rank", -1),
                       text_or(event, "host", "?"), number_or(event, "work_ms", 0),
                       number_or(event, "median_ms", 0));
  }
  return text_or(event, "reason", "");
}

void read_start(const Json& event, RunEvents& events) {
  events.start.clear();
  for (const char* key : {"version", "parameters", "ranks", "arithmetic"}) {
    const auto found = event.find(key);
    if (found == event.end() || found->is_null()) continue;
    events.start.emplace_back(key,
                              found->is_string() ? found->get<std::string>() : json_text(*found));
  }
  events.allocated_bytes.clear();
  const auto allocated = event.find("allocated_bytes");
  if (allocated == event.end() || !allocated->is_object()) return;
  for (const auto& [arena, bytes] : allocated->items()) {
    if (bytes.is_number_integer()) {
      events.allocated_bytes.emplace_back(arena, bytes.get<int64_t>());
    }
  }
}

}  // namespace

RunEvents read_run_events(const fs::path& run_dir) {
  RunEvents events;
  bool is_first = true;
  for_each_json_line(run_dir / "events.jsonl", [&](const Json& event) {
    const std::string name = text_or(event, "event", "");
    if (name == "start") read_start(event, events);
    if (name == "stop" && event.contains("peak_resident_bytes")) {
      events.peak_resident_bytes = integer_or(event, "peak_resident_bytes", 0);
    }
    if (!kShown.contains(name) || (name == "start" && std::exchange(is_first, false))) return;
    const int64_t step = integer_or(event, "step", -1);
    events.list.push_back({number_or(event, "time", 0),
                           step < 0 ? std::nullopt : std::optional<int64_t>(step), name,
                           text_of(event, name)});
    if (events.list.size() > 2 * kMostEvents) {
      events.list.erase(events.list.begin(), events.list.begin() + kMostEvents);
      events.num_left_out += kMostEvents;
    }
  });
  if (events.list.size() > kMostEvents) {
    const size_t surplus = events.list.size() - kMostEvents;
    events.list.erase(events.list.begin(),
                      events.list.begin() + static_cast<std::ptrdiff_t>(surplus));
    events.num_left_out += static_cast<int64_t>(surplus);
  }
  return events;
}

}  // namespace skein
