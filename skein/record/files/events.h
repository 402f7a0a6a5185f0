// events.jsonl: one object per event, {"time": Unix seconds, "event": name, ...}.
// docs/events_format.md lists the names and their fields.
#pragma once

#include <string_view>

#include "skein/base/text/json.h"
#include "skein/record/files/jsonl.h"

namespace skein {

// The current time in Unix seconds.
double unix_time();

// The JSON line of an event, without a line break. Bytes that are not UTF-8 become U+FFFD.
std::string event_line(double time, std::string_view event, const OrderedJson& fields);

// Appends events to `<run_dir>/events.jsonl`, each with the machine that wrote it and its clock
// (base/machine/machine.h); several processes may do so at once.
class EventLog {
 public:
  explicit EventLog(const fs::path& run_dir) : writer_(run_dir / "events.jsonl") {}
  void append(std::string_view event, OrderedJson fields = OrderedJson::object());
  void finish() { writer_.finish(); }

 private:
  JsonlWriter writer_;
};

}  // namespace skein
