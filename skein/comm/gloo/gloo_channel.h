// Messages between two ranks over Gloo.
//
// A message is matched by a slot, a hash of channel, number, bytes and `tag`. Every channel keeps a
// receive posted that nobody answers, because Gloo reports a dead peer only to posted receives, not
// to a message that is half read or half written.
// Errors   gloo::Exception where the peer is gone or the timeout passed
// Threads  one
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "skein/comm/channel.h"

namespace skein {

class GlooChannel : public Channel {
 public:
  // `id` is the same at both ends.
  GlooChannel(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int world_peer, uint64_t id);

  int64_t send(const void* data, int64_t bytes, uint64_t tag) override;
  int64_t receive(void* data, int64_t bytes, uint64_t tag) override;
  void wait_sent(int64_t number, TimePoint deadline) override;
  void wait_received(int64_t number, TimePoint deadline) override;

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
