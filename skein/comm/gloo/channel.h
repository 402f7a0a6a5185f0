// Messages between two ranks of a group, in order in each direction.
//
// A message is matched by a slot, a hash of channel, number, bytes and `tag`: ranks that disagree
// about what comes next wait for each other until the deadline instead of reading each other's
// bytes. Every channel keeps a receive posted that nobody answers, because Gloo reports a dead peer
// only to posted receives, not to a message that is half read or half written.
// Errors   gloo::Exception where the peer is gone or the timeout passed
// Threads  one
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace skein {

class Channel {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `id` is the same at both ends.
  Channel(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int world_peer, uint64_t id);

  // Both post a message and return its number. The channel uses the memory until it was waited for.
  int64_t send(const void* data, int64_t bytes, uint64_t tag);
  int64_t receive(void* data, int64_t bytes, uint64_t tag);

  // Both block until message `number` and all before it are complete.
  void wait_sent(int64_t number, TimePoint deadline);
  void wait_received(int64_t number, TimePoint deadline);

  // Throws if the peer is gone; does not block. Only for a channel that carries no messages.
  void check();

 private:
  uint64_t slot(int64_t number, int64_t bytes, uint64_t tag) const;
  template <typename Wait>
  static void wait_through(int64_t& through, int64_t number, TimePoint deadline, Wait&& wait);

  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int peer_;
  uint64_t id_;
  int64_t num_sends_ = 0, num_receives_ = 0;  // posted
  int64_t num_sent_ = 0, num_received_ = 0;   // complete
};

}  // namespace skein
