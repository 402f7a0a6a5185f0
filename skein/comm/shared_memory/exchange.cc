#include "skein/comm/shared_memory/exchange.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <thread>

#include "skein/base/error.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kLongestSleep = std::chrono::milliseconds(10);  // then looks whether the peer lives
constexpr auto kLongestLinger = std::chrono::seconds(5);
constexpr uint64_t kChunk = uint64_t{8} << 20;

uint64_t random_token() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

class ExchangeChannel : public Channel {
 public:
  ExchangeChannel(Exchange& exchange, Exchange::LineName name) : exchange_(exchange), name_(name) {
    const Lock lock(exchange_.mutex_);
    line_ = &exchange_.lines_[name];
    line_->peer = exchange_.peer_of(name.first);
  }
  ~ExchangeChannel() override {
    const Lock lock(exchange_.mutex_);
    exchange_.lines_.erase(name_);
  }

  int64_t send(const void* data, int64_t bytes, uint64_t tag) override {
    const Lock lock(exchange_.mutex_);
    exchange_.leave(*line_->peer, {.kind = MailboxEntry::kMessage,
                                   .channel = name_.second,
                                   .number = line_->num_sends,
                                   .bytes = static_cast<uint64_t>(bytes),
                                   .tag = tag,
                                   .address = reinterpret_cast<uintptr_t>(data)});
    return static_cast<int64_t>(line_->num_sends++);
  }

  int64_t receive(void* data, int64_t bytes, uint64_t tag) override {
    const Lock lock(exchange_.mutex_);
    line_->posted.push_back({static_cast<char*>(data), static_cast<uint64_t>(bytes), tag});
    return static_cast<int64_t>(line_->num_receives++);
  }

  void wait_sent(int64_t number, TimePoint deadline) override {
    exchange_.wait(*line_, &Exchange::ChannelEnd::num_sent, static_cast<uint64_t>(number),
                   deadline);
  }
  void wait_received(int64_t number, TimePoint deadline) override {
    exchange_.wait(*line_, &Exchange::ChannelEnd::num_received, static_cast<uint64_t>(number),
                   deadline);
  }

 private:
  Exchange& exchange_;
  const Exchange::LineName name_;
  Exchange::ChannelEnd* line_;
};

Exchange::Exchange(int rank, int size)
    : rank_(rank),
      size_(size),
      token_(random_token()),
      mailbox_(size),
      peers_(static_cast<size_t>(size)) {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // fails where there is no Yama
}

Exchange::~Exchange() {
  linger();
  close();
}

// What a ring had no room for still goes: peers wait to hear that their messages were taken.
void Exchange::linger() noexcept {
  const TimePoint deadline = Clock::now() + kLongestLinger;
  while (!is_closed_ && Clock::now() < deadline) {
    const uint32_t bell = mailbox_.bell();
    bool is_done = true;
    {
      const Lock lock(mutex_);
      progress();  // makes room for peers that linger, too
      for (const int number : opened_) {
        Peer& peer = *peer_of(number);
        is_done = is_done && (peer.outgoing.empty() || !peer.lost.empty() ||
                              peer.memory.mailbox().is_closed() || peer.memory.has_ended());
      }
    }
    if (is_done) return;
    mailbox_.sleep(bell, kLongestSleep);
  }
}

MemoryOffer Exchange::offer() const {
  return {.process = ::getpid(),
          .mailbox = mailbox_.fd(),
          .token = token_,
          .token_address = reinterpret_cast<uintptr_t>(&token_)};
}

void Exchange::open(int peer, const MemoryOffer& offer) {
  auto opened = std::make_unique<Peer>(offer, size_);
  const Lock lock(mutex_);
  peers_[static_cast<size_t>(peer)] = std::move(opened);
  opened_.push_back(peer);
}

bool Exchange::reaches(int peer) const {
  const Lock lock(mutex_);
  return peer_of(peer) != nullptr;
}

void Exchange::forget(int peer) {
  const Lock lock(mutex_);
  std::erase(opened_, peer);
  peers_[static_cast<size_t>(peer)] = nullptr;
}

std::unique_ptr<Channel> Exchange::channel(int peer, uint64_t id) {
  return std::make_unique<ExchangeChannel>(*this, LineName(peer, id));
}

void Exchange::help() {
  const Lock lock(mutex_);
  if (progress() && mailbox_.has_sleepers()) mailbox_.ring_bell();
}

void Exchange::close() noexcept {
  is_closed_ = true;
  mailbox_.close();
  mailbox_.ring_bell();
  const Lock lock(mutex_);  // nobody copies any more
  for (const int peer : opened_) peer_of(peer)->memory.mailbox().ring_bell();
}

void Exchange::leave(Peer& peer, const MailboxEntry& entry) {
  peer.outgoing.push_back(entry);
  flush(peer);
}

// True if an entry went.
bool Exchange::flush(Peer& peer) {
  bool moved = false;
  while (!peer.outgoing.empty() && peer.memory.mailbox().put(rank_, peer.outgoing.front())) {
    peer.outgoing.pop_front();
    moved = true;
  }
  if (moved) peer.memory.mailbox().ring_bell();
  return moved;
}

// True if an entry came.
bool Exchange::empty_lane(int peer) {
  bool moved = false;
  while (const auto entry = mailbox_.take(peer)) {
    moved = true;
    ChannelEnd& line = lines_[{peer, entry->channel}];
    if (entry->kind == MailboxEntry::kMessage) {
      line.arrived.push_back(*entry);
    } else if (entry->kind == MailboxEntry::kTaken && entry->number == line.num_sent &&
               line.num_sent < line.num_sends) {
      ++line.num_sent;
    } else {
      peer_of(peer)->lost = "it left what is no message in this rank's mailbox";
    }
  }
  if (mailbox_.writer_waits(peer)) peer_of(peer)->memory.mailbox().ring_bell();
  return moved;
}

// False if the peer is lost or the world ended: what was read may be anything.
bool Exchange::read(Peer& peer, const MailboxEntry& message, char* to) {
  for (uint64_t at = 0; at < message.bytes;) {
    const uint64_t bytes = std::min(kChunk, message.bytes - at);
    peer.lost = peer.memory.read(to + at, message.address + at, static_cast<int64_t>(bytes));
    if (peer.memory.mailbox().is_closed()) peer.lost = "it ended the world";
    if (peer.memory.has_ended()) peer.lost = "its process ended";
    if (!peer.lost.empty() || is_closed_) return false;
    at += bytes;
  }
  return true;
}

// Messages that are what was posted for them. True if one was taken.
bool Exchange::take_messages(uint64_t id, ChannelEnd& line) {
  bool moved = false;
  while (!line.posted.empty() && !line.arrived.empty()) {
    const Posted posted = line.posted.front();
    const MailboxEntry message = line.arrived.front();
    const bool fits = message.number == line.num_received && message.bytes == posted.bytes &&
                      message.tag == posted.tag;
    if (!fits || !read(*line.peer, message, posted.to)) break;
    line.posted.pop_front();
    line.arrived.pop_front();
    ++line.num_received;
    moved = true;
    leave(*line.peer, {.kind = MailboxEntry::kTaken, .channel = id, .number = message.number});
  }
  return moved;
}

bool Exchange::progress() {
  if (is_closed_) return false;
  bool moved = false;
  for (const int peer : opened_) {
    moved |= flush(*peer_of(peer));
    moved |= empty_lane(peer);
  }
  for (auto& [name, line] : lines_) {
    if (line.peer != nullptr && line.peer->lost.empty()) moved |= take_messages(name.second, line);
  }
  return moved;
}

void Exchange::fail_late(const ChannelEnd& line) {
  if (line.posted.empty() || line.arrived.empty()) throw std::runtime_error("it is silent");
  const auto& [posted, arrived] = std::pair(line.posted.front(), line.arrived.front());
  throw MessageMismatch(fmt::format("it sent {} where this rank expects {}",
                                    message_text(arrived.tag, arrived.bytes),
                                    message_text(posted.tag, posted.bytes)));
}

void Exchange::wait(ChannelEnd& line, uint64_t ChannelEnd::*done, uint64_t number,
                    TimePoint deadline) {
  const TimePoint begin = Clock::now();
  bool peer_has_left = false;
  for (;;) {
    const uint32_t bell = mailbox_.bell();
    bool moved = false;
    {
      const Lock lock(mutex_);
      moved = progress();
      if (line.*done > number) {
        // Another thread's message may have been among what was moved.
        if (moved && mailbox_.has_sleepers()) mailbox_.ring_bell();
        return;
      }
      if (is_closed_) throw std::runtime_error("this rank ended the world");
      if (!line.peer->lost.empty()) throw std::runtime_error(line.peer->lost);
      if (peer_has_left) throw std::runtime_error("its process ended or left the world");
      peer_has_left = line.peer->memory.mailbox().is_closed();
      if (!peer_has_left && Clock::now() >= deadline) {
        fail_late(line);
      }
    }
    if (moved && mailbox_.has_sleepers()) mailbox_.ring_bell();
    if (moved || peer_has_left) continue;
    const TimePoint now = Clock::now();
    if (now - begin < kSpin) {
      std::this_thread::yield();
      continue;
    }
    const auto longest = std::min<Clock::duration>(kLongestSleep, deadline - now);
    if (!mailbox_.sleep(bell, std::max(longest, Clock::duration(1)))) {
      peer_has_left = line.peer->memory.has_ended();
    }
  }
}

}  // namespace skein
