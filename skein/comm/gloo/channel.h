// Messages between two ranks of a group, in order, one way and the other.
//
// A message is matched by a slot: a hash of channel, number, bytes and `tag`, so that ranks that do
// not agree about what comes next wait for each other until the deadline instead of reading each
// other's bytes. A receive that nobody answers stands on every channel: Gloo reports a dead peer to
// standing receives only, not to a message half read or half written.
//
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

  // `id` is the channel's name, the same at both ends.
  Channel(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int world_peer, uint64_t id);

  // Post, and return the message's number. Memory is the channel's until it was waited for.
  int64_t send(const void* data, int64_t bytes, uint64_t tag);
  int64_t receive(void* data, int64_t bytes, uint64_t tag);

  // Until message `number` and all before it are through.
  void wait_sent(int64_t number, TimePoint deadline);
  void wait_received(int64_t number, TimePoint deadline);

  // Throws where the peer is gone; does not wait. Of a channel that carries no messages.
  void check();

 private:
  uint64_t slot(int64_t number, int64_t bytes, uint64_t tag) const;
  template <typename Wait>
  static void wait_through(int64_t& through, int64_t number, TimePoint deadline, Wait&& wait);

  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int peer_;
  uint64_t id_;
  int64_t num_sends_ = 0, num_receives_ = 0;  // posted
  int64_t num_sent_ = 0, num_received_ = 0;   // through
};

}  // namespace skein
