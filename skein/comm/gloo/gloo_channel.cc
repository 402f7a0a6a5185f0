#include "skein/comm/gloo/gloo_channel.h"

#include <gloo/common/error.h>

#include <algorithm>

namespace skein {
namespace {

constexpr uint64_t kStandingReceive = 0x736b65696e;  // taken by no message, but for 1 in 2^64

// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::chrono::milliseconds until(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(left));
}

size_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

}  // namespace

GlooChannel::GlooChannel(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, int world_peer,
                         uint64_t id)
    : buffer_(std::move(buffer)), peer_(world_peer), id_(id) {
  buffer_->recv(peer_, kStandingReceive, 0, 0);
}

uint64_t GlooChannel::slot(int64_t number, int64_t bytes, uint64_t tag) const {
  const uint64_t message = mix(id_ ^ mix(static_cast<uint64_t>(number)));
  return mix(message ^ mix(static_cast<uint64_t>(bytes) ^ mix(tag)));
}

int64_t GlooChannel::send(const void* data, int64_t bytes, uint64_t tag) {
  buffer_->send(peer_, slot(num_sends_, bytes, tag), address(data), static_cast<size_t>(bytes));
  return num_sends_++;
}

int64_t GlooChannel::receive(void* data, int64_t bytes, uint64_t tag) {
  buffer_->recv(peer_, slot(num_receives_, bytes, tag), address(data), static_cast<size_t>(bytes));
  return num_receives_++;
}

// Gloo's waits check for a lost peer before they check for their message, which may have arrived
// just before its sender left. A second wait finds it.
template <typename Wait>
void GlooChannel::wait_through(int64_t& through, int64_t number, TimePoint deadline, Wait&& wait) {
  for (; through <= number; ++through) {
    try {
      wait(until(deadline));
    } catch (const gloo::IoException&) {
      if (std::chrono::steady_clock::now() >= deadline) throw;
      wait(std::chrono::milliseconds(0));
    }
  }
}

void GlooChannel::wait_sent(int64_t number, TimePoint deadline) {
  wait_through(num_sent_, number, deadline, [&](auto left) { buffer_->waitSend(nullptr, left); });
}

void GlooChannel::wait_received(int64_t number, TimePoint deadline) {
  wait_through(num_received_, number, deadline,
               [&](auto left) { buffer_->waitRecv(nullptr, left); });
}

// Waits for the receive that nobody answers, aborted in advance: Gloo checks for a lost peer and
// returns.
void GlooChannel::check() {
  buffer_->abortWaitRecv();
  buffer_->waitRecv(nullptr, std::chrono::hours(1));
}

}  // namespace skein
