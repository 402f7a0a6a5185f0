// Messages between two ranks of a group, in order in each direction: over Gloo
// (gloo/gloo_channel.h), or through the memory of one host (shared_memory/exchange.h).
//
// Ranks that disagree about what comes next, by number, bytes or `tag`, wait for each other until
// the deadline instead of reading each other's bytes.
// Errors   std::exception where the peer is gone or the deadline passed; MessageMismatch where it
//          passed and a message is there that is not the one that is waited for
// Threads  one
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "skein/comm/communicator.h"

namespace skein {

struct MessageMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Channel {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~Channel() = default;

  // Both post a message and return its number. The channel uses the memory until it was waited for.
  virtual int64_t send(const void* data, int64_t bytes, uint64_t tag) = 0;
  virtual int64_t receive(void* data, int64_t bytes, uint64_t tag) = 0;

  // Both block until message `number` and all before it are complete.
  virtual void wait_sent(int64_t number, TimePoint deadline) = 0;
  virtual void wait_received(int64_t number, TimePoint deadline) = 0;
};

// What both ends of a message have to agree on besides its size.
uint64_t message_tag(const Collective& collective);
// "[all-reduce] in f32, a message of 400 bytes"; for any tag, also a damaged one.
std::string message_text(uint64_t tag, uint64_t bytes);

}  // namespace skein
