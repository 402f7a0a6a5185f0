// Messages between the ranks of one host, straight from the sender's memory to the receiver's.
//
// A send leaves an entry in the peer's mailbox, or queues it here while the ring is full. Whoever
// waits, for whatever, reads all messages that have arrived for a posted receive, with its own
// thread, and tells their senders. So nobody waits for a rank that waits; a rank that computes
// takes part when it next waits.
//
// Cost     no thread, no copy but one; an empty message takes two entries and at most two wake-ups
// Errors   channels throw std::runtime_error: the peer's process ended, it ended its world, its
//          memory cannot be read, or the deadline passed (and what arrived instead)
// Threads  any; one copies at a time
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/comm/channel.h"
#include "skein/comm/shared_memory/mailbox.h"
#include "skein/comm/shared_memory/peer_memory.h"

namespace skein {

class Exchange {
 public:
  // Of `rank` in a world of `size`. From now on every process of this user may read this one's
  // memory, where the system has Yama. std::runtime_error: there is no memory for a mailbox.
  Exchange(int rank, int size);
  ~Exchange();

  MemoryOffer offer() const;
  // std::runtime_error: why the peer's memory cannot be used.
  void open(int peer, const MemoryOffer& offer);
  bool reaches(int peer) const;
  // The peer, which was opened, cannot read this process's memory.
  void forget(int peer);

  // To a rank that is reached; `id` is the same at both ends. The exchange must outlive it.
  std::unique_ptr<Channel> channel(int peer, uint64_t id);

  // Reads what has arrived: for whoever waits for something else than a message.
  void help();

  // All waits fail, here and of those that wait for this rank, and no memory is used any more.
  void close() noexcept;

 private:
  friend class ExchangeChannel;
  using TimePoint = Channel::TimePoint;
  struct Posted {
    char* to;
    uint64_t bytes, tag;
  };
  struct Peer {
    Peer(const MemoryOffer& offer, int num_lanes) : memory(offer, num_lanes) {}
    PeerMemory memory;
    std::deque<MailboxEntry> outgoing;  // for which the ring has no room
    std::string lost;                   // why it can be talked with no longer
  };
  // One end of a channel.
  struct ChannelEnd {
    Peer* peer = nullptr;
    uint64_t num_sends = 0, num_receives = 0;  // posted
    uint64_t num_sent = 0, num_received = 0;   // complete
    std::deque<Posted> posted;                 // receives
    std::deque<MailboxEntry> arrived;          // messages
  };
  using LineName = std::pair<int, uint64_t>;  // peer, channel

  Peer* peer_of(int peer) const SKEIN_REQUIRES(mutex_) {
    return peers_[static_cast<size_t>(peer)].get();
  }
  void linger() noexcept;
  void leave(Peer& peer, const MailboxEntry& entry) SKEIN_REQUIRES(mutex_);
  bool flush(Peer& peer) SKEIN_REQUIRES(mutex_);
  bool empty_lane(int peer) SKEIN_REQUIRES(mutex_);
  bool take_messages(uint64_t id, ChannelEnd& line) SKEIN_REQUIRES(mutex_);
  bool read(Peer& peer, const MailboxEntry& message, char* to) SKEIN_REQUIRES(mutex_);
  bool progress() SKEIN_REQUIRES(mutex_);
  // Until `line` has completed `number` of what `done` counts.
  void wait(ChannelEnd& line, uint64_t ChannelEnd::*done, uint64_t number, TimePoint deadline);
  [[noreturn]] static void fail_late(const ChannelEnd& line);

  const int rank_, size_;
  const uint64_t token_;
  Mailbox mailbox_;
  std::atomic<bool> is_closed_{false};
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_ SKEIN_GUARDED_BY(mutex_);  // by world rank
  std::vector<int> opened_ SKEIN_GUARDED_BY(mutex_);
  std::map<LineName, ChannelEnd> lines_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein
