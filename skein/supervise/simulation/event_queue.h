// What is to happen at which simulated time. Of two things at one time the one that was put in
// first happens first, so that a history depends on its seed alone.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "skein/supervise/records.h"

namespace skein {

class EventQueue {
 public:
  void put(Millis time, std::function<void()> happens) {
    events_.push({time, sequence_++, std::move(happens)});
  }
  bool empty() const { return events_.empty(); }
  Millis next_time() const { return events_.top().time; }
  std::function<void()> take() {
    // Moved out: the order of the queue does not look at it.
    std::function<void()> happens = std::move(const_cast<Event&>(events_.top()).happens);
    events_.pop();
    return happens;
  }

 private:
  struct Event {
    Millis time;
    int64_t sequence;
    std::function<void()> happens;
    bool operator<(const Event& other) const {
      return std::pair(time, sequence) > std::pair(other.time, other.sequence);
    }
  };
  std::priority_queue<Event> events_;
  int64_t sequence_ = 0;
};

}  // namespace skein
