#include "skein/record/report/idle_starts.h"

#include <utility>

#include "skein/record/files/event_fields.h"

namespace skein {

void IdleStarts::add(const Json& event, const Visit& visit) {
  const std::string name = text_or(event, "event", "");
  const int64_t step = integer_or(event, "step", -1);
  const bool is_done = name == "stop" && text_or(event, "reason", "") == "done";
  if (!held_.is_null() && is_done && step == integer_or(held_, "step", -1)) {
    held_ = nullptr;
    return;
  }
  flush(visit);
  if (name == "start" && step >= 0 && step == done_at_) {
    held_ = event;
    return;
  }
  done_at_ = is_done ? step : -1;
  visit(event);
}

void IdleStarts::flush(const Visit& visit) {
  if (held_.is_null()) return;
  done_at_ = -1;
  visit(std::exchange(held_, nullptr));
}

}  // namespace skein
