#include "skein/supervise/store_link.h"

namespace skein {

StoreLink::StoreLink(const SupervisorOptions& options) : options_(options) {
  record_.host = options.host;
  record_.succeeds = options.succeeds;
  record_.workers = options.workers;
  record_.replicas = options.replicas;
}

std::optional<StoreCall> StoreLink::begin(StoreRole role, Millis now) {
  if (exchanging_ || (!changed_ && now < next_)) return std::nullopt;
  writes_ = changed_ || !write_began_ || now - *write_began_ >= options_.beat * 9 / 10;
  exchanging_ = true;
  changed_ = false;
  began_ = now;
  if (writes_) {
    write_began_ = now;
    written_beat_ = ++record_.beat;
  }
  return StoreCall{record_, writes_, role, now};
}

void StoreLink::succeeded() {
  exchanging_ = false;
  if (!writes_) return;
  last_good_ = began_;
  published_ = written_beat_;
}

void StoreLink::failed(Millis now) {
  exchanging_ = false;
  write_began_.reset();
  changed_ = false;
  next_ = now + kRetry;
}

Millis StoreLink::permitted_until() const {
  const auto share = kCutOffShare * static_cast<double>(options_.membership.fence);
  return last_good_ + static_cast<Millis>(share);
}

std::optional<Millis> StoreLink::next_time() const {
  return exchanging_ ? std::nullopt : std::optional(next_);
}

}  // namespace skein
