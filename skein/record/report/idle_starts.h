// Leaves out starts of a run that was finished already, which did nothing: `start` and `stop` after
// the same step as the `stop` before. Versions up to now wrote them, and the time that the run lay
// finished is no time of the run.
#pragma once

#include <functional>

#include "skein/base/text/json.h"

namespace skein {

class IdleStarts {
 public:
  using Visit = std::function<void(const Json&)>;

  // Visits the event, in its order. A start that may be idle is held back until what follows tells.
  void add(const Json& event, const Visit& visit);
  // A step follows, or nothing does: what is held back is no idle start.
  void flush(const Visit& visit);

 private:
  Json held_;             // null: nothing is
  int64_t done_at_ = -1;  // the step of the newest event, if that is `stop` and the run was done
};

}  // namespace skein
